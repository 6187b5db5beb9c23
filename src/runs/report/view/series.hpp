#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rubato {

/// Numbers in the course of a run, for a curve that is narrower than they are many: their means
/// over equally long stretches, in memory that does not grow with the run.
class Series {
 public:
  /// Takes the next number: it is that of the run when it has come to `at`, which is not negative
  /// and never falls. What is not finite counts as missing.
  void add(double at, double value);
  /// The curve of `cells` cells from 0 to `end`, up to where the run has come: the mean of each
  /// cell's numbers; where it has none, that of the cell before it; NaN where there is none before
  /// it, or all are missing.
  [[nodiscard]] std::vector<double> curve(std::size_t cells, double end) const;
  [[nodiscard]] bool empty() const { return stretches_.empty(); }

 private:
  struct Stretch {
    double sum = 0;
    std::int64_t finite = 0;
    std::int64_t numbers = 0;

    void take(const Stretch& other);
  };

  void halve();

  // From 0 on, of length_ each.
  std::vector<Stretch> stretches_;
  double length_ = 1;
  double last_ = 0;
};

}  // namespace rubato
