// The instructions that every CPU has: SSE2 on x86-64, NEON with FMA on ARM.
#define RUBATO_DENSE_EIGEN rubato_eigen_base
#define RUBATO_DENSE_KERNELS base_kernels
#include "dense_kernels.inc"
