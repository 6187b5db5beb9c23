#include "series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rubato {

namespace {

// Maximum number of stretches. A long run has at least half as many, which is still more than the
// columns of a terminal.
constexpr std::size_t kMost = 1024;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void Series::Stretch::take(const Stretch& other) {
  sum += other.sum;
  finite += other.finite;
  numbers += other.numbers;
}

void Series::add(double at, double value) {
  last_ = std::max(last_, at);
  while (last_ >= length_ * static_cast<double>(kMost)) halve();
  const auto index = static_cast<std::size_t>(last_ / length_);
  if (index >= stretches_.size()) stretches_.resize(index + 1);
  const bool finite = std::isfinite(value);
  stretches_[index].take({.sum = finite ? value : 0, .finite = finite ? 1 : 0, .numbers = 1});
}

void Series::halve() {
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch stretch = stretches_[i];
    if (i % 2 == 0) stretches_[i / 2] = {};
    stretches_[i / 2].take(stretch);
  }
  stretches_.resize((stretches_.size() + 1) / 2);
  length_ *= 2;
}

std::vector<double> Series::curve(std::size_t cells, double end) const {
  if (empty() || cells == 0) return {};
  const double cell = std::max(end, last_) / static_cast<double>(cells);
  const std::size_t last =
      cell > 0 ? std::min(cells - 1, static_cast<std::size_t>(last_ / cell)) : 0;
  std::vector<double> means;
  std::size_t next = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const double limit = i == last ? last_ + length_ : cell * static_cast<double>(i + 1);
    Stretch all;
    for (; next < stretches_.size() && static_cast<double>(next) * length_ < limit; ++next) {
      all.take(stretches_[next]);
    }
    if (all.numbers == 0) {
      means.push_back(means.empty() ? kMissing : means.back());
    } else {
      means.push_back(all.finite == 0 ? kMissing : all.sum / static_cast<double>(all.finite));
    }
  }
  return means;
}

}  // namespace rubato
