#ifdef __x86_64__
#define RUBATO_DENSE_EIGEN rubato_eigen_avx2
#define RUBATO_DENSE_KERNELS avx2_kernels
#include "dense_kernels.inc"
#endif
