#define RUBATO_DENSE_EIGEN rubato_bench_eigen_base
#include "eigen_step.inc"

void rubato_bench::eigen_step_base(const Step& step) {
  eigen_step(step);
}
