// placeholder being written
namespace gs::kernels::GS_BACKEND {}
