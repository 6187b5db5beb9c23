#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rubato {

/// Numbers over the course of a run, for a curve with fewer columns than there are numbers: it
/// keeps their means over stretches of equal length, in memory that does not grow with the run.
class Series {
 public:
  /// Adds the number at position `at` of the run, which is not negative and never decreases. A
  /// number that is not finite counts as missing.
  void add(double at, double value);
  /// The curve in `cells` equal cells from 0 to `end`, up to the current position. The value of a
  /// cell is the mean of its finite numbers; a cell without numbers repeats the one before it. It
  /// is NaN if there is none before it, or if none of its numbers is finite.
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

  // Consecutive stretches from 0 on, each length_ long.
  std::vector<Stretch> stretches_;
  double length_ = 1;
  double last_ = 0;
};

}  // namespace rubato
