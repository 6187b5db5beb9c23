#include "substep_map.hpp"

#include <algorithm>
#include <utility>

namespace rubato::page {

void SubstepMap::add(const std::vector<std::int64_t>& substeps) {
  if (steps_ == width_ * static_cast<std::int64_t>(most_columns_)) {
    for (std::size_t i = 0; 2 * i < columns_.size(); ++i) {
      std::vector<Sum> merged = std::move(columns_[2 * i]);
      const std::vector<Sum>& second = columns_[2 * i + 1];
      merged.resize(std::max(merged.size(), second.size()));
      for (std::size_t core = 0; core < second.size(); ++core) {
        merged[core].substeps += second[core].substeps;
        merged[core].count += second[core].count;
      }
      columns_[i] = std::move(merged);
    }
    columns_.resize(columns_.size() / 2);
    width_ *= 2;
  }
  if (steps_ % width_ == 0) columns_.emplace_back();
  ++steps_;
  std::vector<Sum>& column = columns_.back();
  column.resize(std::max(column.size(), substeps.size()));
  differs_ = differs_ || (steps_ > 1 && cores_ != substeps.size());
  cores_ = std::max(cores_, substeps.size());
  for (std::size_t core = 0; core < substeps.size(); ++core) {
    column[core].substeps += substeps[core];
    ++column[core].count;
    if (!first_) first_ = substeps[core];
    differs_ = differs_ || substeps[core] != *first_;
  }
}

std::vector<std::vector<std::optional<double>>> SubstepMap::means() const {
  if (cores_ == 0) return {};
  const std::size_t group = cores_of_row();
  std::vector<std::vector<std::optional<double>>> rows((cores_ + group - 1) / group);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const std::vector<Sum>& column : columns_) {
      Sum sum;
      for (std::size_t core = row * group; core < std::min((row + 1) * group, column.size());
           ++core) {
        sum.substeps += column[core].substeps;
        sum.count += column[core].count;
      }
      rows[row].push_back(sum.count == 0 ? std::nullopt
                                         : std::optional(static_cast<double>(sum.substeps) /
                                                         static_cast<double>(sum.count)));
    }
  }
  return rows;
}

}  // namespace rubato::page
