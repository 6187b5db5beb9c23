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
  if (step.seconds.exchange) {
    seconds_.exchange = seconds_.exchange.value_or(0) + *step.seconds.exchange;
  }
  seconds_.update += step.seconds.update;
  seconds_.wall += step.seconds.wall;
}

std::string EpochDetails::take(const EpochRecord& epoch, int threads) {
  if (!any_) return {};
  const EpochDetails all = std::exchange(*this, {});
  const StepTiming& seconds = all.seconds_;
  const double whole = seconds.wall * threads;
  // All threads update together, and wait for other hosts together, so these times count for each
  // thread.
  const double update = seconds.update * threads;
  const double exchange = seconds.exchange.value_or(0) * threads;
  const double rest = whole - seconds.compute - seconds.data - seconds.reduce - exchange - update;
  const auto percent = [whole](double part) { return whole > 0 ? 100 * part / whole : 0; };
  return fmt::format(
      "  {}  {}  {}  {}\n"
      "  steps {:.3g} s of {} thread{}: compute {:.1f} %, data {:.1f} %, reduce {:.1f} %,{} update "
      "{:.1f} %, waiting {:.1f} %  tests {:.3g} s\n",
      all.batch_.text("batch"), all.cores_.text("cores"), all.rate_.text("lr"),
      all.gain_.text("gain"), seconds.wall, threads, threads == 1 ? "" : "s",
      percent(seconds.compute), percent(seconds.data), percent(seconds.reduce),
      seconds.exchange ? fmt::format(" exchange {:.1f} %,", percent(exchange)) : "",
      percent(update), percent(std::max(0.0, rest)), epoch.test_seconds);
}

}  // namespace rubato
