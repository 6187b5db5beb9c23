#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/core/seconds.hpp"
#include "base/machine/instruction_set.hpp"
#include "measure.hpp"

namespace rubato::lab {

namespace {

// Each of the three arrays has 128 MiB, so that together they exceed the last-level cache of a
// workstation several times.
constexpr std::size_t kElements = std::size_t{1} << 24;
constexpr int kPasses = 5;

[[gnu::always_inline]] inline void triad(double* __restrict a, const double* __restrict b,
                                         const double* __restrict c, double s, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}

}  // namespace

double triad_bandwidth(Workers& workers) {
  std::vector<double> a(kElements, 0);
  const std::vector<double> b(kElements, 1);
  const std::vector<double> c(kElements, 2);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Stopwatch stopwatch;
    workers.for_each_range(kElements, [&](std::size_t begin, std::size_t end) {
      with_vectors([&]() __attribute__((always_inline)) {
        triad(a.data() + begin, b.data() + begin, c.data() + begin, 3, end - begin);
      });
    });
    best = std::max(best, 24.0 * static_cast<double>(kElements) / stopwatch.seconds());
  }
  return best;
}

}  // namespace rubato::lab
