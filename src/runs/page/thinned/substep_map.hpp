#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rubato::page {

/// The number of substeps of each core in each step, thinned while it is read: neighbouring steps
/// share a column and neighbouring cores a row, which has the mean over the cores that took part.
class SubstepMap {
 public:
  /// Limits of the map; `columns` must be even.
  SubstepMap(std::size_t columns, std::size_t rows) : most_columns_(columns), most_rows_(rows) {}

  void add(const std::vector<std::int64_t>& substeps);

  /// Whether any two cores or steps have different numbers, so that there is something to see.
  [[nodiscard]] bool has_differences() const { return differs_; }
  /// Means indexed by row and column; empty where no core of the row took part.
  [[nodiscard]] std::vector<std::vector<std::optional<double>>> means() const;
  [[nodiscard]] std::int64_t steps_of_column() const { return width_; }
  [[nodiscard]] std::size_t cores_of_row() const { return (cores_ + most_rows_ - 1) / most_rows_; }
  [[nodiscard]] std::size_t cores() const { return cores_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  struct Sum {
    std::int64_t substeps = 0;
    std::int64_t count = 0;
  };

  std::size_t most_columns_;
  std::size_t most_rows_;
  std::int64_t width_ = 1;
  std::int64_t steps_ = 0;
  std::size_t cores_ = 0;
  bool differs_ = false;
  std::optional<std::int64_t> first_{};
  // Sums indexed by column and core.
  std::vector<std::vector<Sum>> columns_{};
};

}  // namespace rubato::page
