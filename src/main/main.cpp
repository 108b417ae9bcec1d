#include "graphscale/cli.hpp"

int main(int argc, char** argv) { return gs::run_command_line(argc, argv); }
