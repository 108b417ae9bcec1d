#include "kernels/ops.hpp"

namespace gs::kernels {

const Ops& ops(const Exec& exec) {
  if (!exec.device.is_cuda()) return cpu::ops();
#if defined(GS_CUDA)
  return cuda::ops();
#else
  throw Error(Fault::device, "device cuda: this build has no CUDA; use device cpu or rebuild with -DGS_CUDA=ON");
#endif
}

}  // namespace gs::kernels
