#define RUBATO_DENSE_EIGEN rubato_bench_eigen_avx2
#include "eigen_step.inc"

void rubato_bench::eigen_step_avx2(const Step& step) {
  eigen_step(step);
}
