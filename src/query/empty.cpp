namespace gs {}
