#ifdef __x86_64__
#define RUBATO_DENSE_EIGEN rubato_eigen_avx512
#define RUBATO_DENSE_KERNELS avx512_kernels
#include "dense_kernels.inc"
#endif
