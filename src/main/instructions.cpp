// Built for plain x86-64 while the rest may need AVX-512: runs before anything else of the program and refuses a CPU
// that lacks what the rest was compiled for, where an illegal instruction would be the only other sign.
#include <unistd.h>

#include <cstring>

#ifndef GS_NEEDS_AVX512F
#define GS_NEEDS_AVX512F 0
#endif
#ifndef GS_NEEDS_AVX2
#define GS_NEEDS_AVX2 0
#endif

namespace {

[[gnu::constructor(101)]] void refuse_a_lesser_cpu() {
  __builtin_cpu_init();
  const bool enough = (!GS_NEEDS_AVX512F || __builtin_cpu_supports("avx512f")) &&
                      (!GS_NEEDS_AVX2 || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
  if (enough) return;
  constexpr char line[] =
      "error: this graphscale was built for a CPU with "
      "wider vectors than this one has; rebuild here, or with -DGS_CPU_ARCH=x86-64-v3 (AVX2) or x86-64 (any)\n";
  const ssize_t written = write(STDERR_FILENO, line, std::strlen(line));
  _exit(written < 0 ? 1 : 5);
}

}  // namespace
