#include "epoch_details.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rubato {

void EpochDetails::Range::take(double value, bool first) {
  least = first ? value : std::min(least, value);
  most = first ? value : std::max(most, value);
}

std::string EpochDetails::Range::text(const char* name) const {
  const std::string text = fmt::format("{} {:.4g}", name, least);
  return least == most ? text : fmt::format("{} to {:.4g}", text, most);
}

void EpochDetails::note(const StepRecord& step) {
  batch_.take(static_cast<double>(step.plan.batch_size), !any_);
  cores_.take(static_cast<double>(step.plan.cores), !any_);
  rate_.take(step.learning_rate, !any_);
  gain_.take(step.gain, !any_);
  any_ = true;
  seconds_.data += step.seconds.data;
  seconds_.compute += step.seconds.compute;
  seconds_.reduce += step.seconds.reduce;
  seconds_.update += step.seconds.update;
  seconds_.wall += step.seconds.wall;
}

std::string EpochDetails::take(const EpochRecord& epoch) {
  if (!any_) return {};
  const EpochDetails all = std::exchange(*this, {});
  const StepTiming& seconds = all.seconds_;
  return fmt::format(
      "  {}  {}  {}  {}\n"
      "  steps {:.3g} s, of which update {:.3g} s  tests {:.3g} s  all threads together: data "
      "{:.3g} s, compute {:.3g} s, reduce {:.3g} s\n",
      all.batch_.text("batch"), all.cores_.text("cores"), all.rate_.text("lr"),
      all.gain_.text("gain"), seconds.wall, seconds.update, epoch.test_seconds, seconds.data,
      seconds.compute, seconds.reduce);
}

}  // namespace rubato
