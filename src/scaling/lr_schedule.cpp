#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/lr_schedules.hpp>
#include <rubato/scaling/reduce_on_plateau.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kMostObservations = 1'000'000'000;
constexpr RealRange kInsideShare{0, 1, false, false, "a number between 0 and 1"};

constexpr std::array<Choice<ThresholdMode>, 2> kThresholdModes{
    {{ThresholdMode::relative, "rel"}, {ThresholdMode::absolute, "abs"}}};

using Schedule = std::unique_ptr<LrSchedule>;

Schedule make_constant(Spec& spec, const std::optional<Metric>&) {
  return std::make_unique<ConstantSchedule>(spec.real("value", 1, kNotNegative));
}

Schedule make_step(Spec& spec, const std::optional<Metric>&) {
  spec.require("every", "30");
  const double every = spec.real("every", 1, kPositive);
  return std::make_unique<StepSchedule>(every, spec.real("gamma", 0.1, kPositive));
}

Schedule make_multi_step(Spec& spec, const std::optional<Metric>&) {
  spec.require("at", "30/60/80");
  std::vector<double> milestones = spec.reals("at", kNotNegative);
  return std::make_unique<MultiStepSchedule>(std::move(milestones),
                                             spec.real("gamma", 0.1, kPositive));
}

Schedule make_polynomial(Spec& spec, const std::optional<Metric>&) {
  spec.require("total", "90");
  const double total = spec.real("total", 1, kPositive);
  const double power = spec.real("power", 2, kPositive);
  return std::make_unique<PolynomialSchedule>(total, power, spec.real("floor", 0, kShare));
}

Schedule make_cosine(Spec& spec, const std::optional<Metric>&) {
  spec.require("total", "90");
  const double total = spec.real("total", 1, kPositive);
  return std::make_unique<CosineSchedule>(total, spec.real("floor", 0, kShare));
}

Schedule make_exponential(Spec& spec, const std::optional<Metric>&) {
  return std::make_unique<ExponentialSchedule>(spec.real("gamma", 0.95, kPositive));
}

Schedule make_warmup(Spec& spec, const std::optional<Metric>&) {
  spec.require("length", "5");
  const double length = spec.real("length", 1, kPositive);
  return std::make_unique<WarmupSchedule>(length, spec.real("start", 0, kShare));
}

Schedule make_warmup_cosine(Spec& spec, const std::optional<Metric>&) {
  spec.require("warmup", "5");
  spec.require("total", "90");
  const double warmup = spec.real("warmup", 1, kPositive);
  return std::make_unique<WarmupCosineSchedule>(warmup, spec.real("total", 1, kPositive));
}

// What is watched says whether more of it is better.
MetricMode plateau_mode(Spec& spec, const std::optional<Metric>& watched) {
  const MetricMode usual = watched ? mode_of(*watched) : MetricMode::min;
  const MetricMode mode =
      parse_choice("mode", spec.text("mode", choice_name(kMetricModes, usual)), kMetricModes);
  if (watched && mode != usual) {
    spec.reject("mode", fmt::format("{} is watched, which is better when it is {}; accepted: {}",
                                    choice_name(kMetrics, *watched),
                                    usual == MetricMode::min ? "smaller" : "larger",
                                    choice_name(kMetricModes, usual)));
  }
  return mode;
}

Schedule make_plateau(Spec& spec, const std::optional<Metric>& watched) {
  ReduceOnPlateauOptions options;
  options.mode = plateau_mode(spec, watched);
  options.factor = spec.real("factor", options.factor, kInsideShare);
  options.patience = spec.whole("patience", options.patience, 0, kMostObservations);
  options.threshold = spec.real("threshold", options.threshold, kNotNegative);
  options.threshold_mode =
      parse_choice("threshold-mode", spec.text("threshold-mode", "rel"), kThresholdModes);
  options.cooldown = spec.whole("cooldown", 0, 0, kMostObservations);
  options.floor = spec.real("floor", 0, kShare);
  return std::make_unique<ReduceOnPlateau>(options);
}

constexpr std::array<std::string_view, 9> kNames{"constant",   "step",          "multi-step",
                                                 "polynomial", "cosine",        "exponential",
                                                 "warmup",     "warmup-cosine", "plateau"};
constexpr std::array<Schedule (*)(Spec&, const std::optional<Metric>&), kNames.size()> kMakers{
    make_constant,    make_step,   make_multi_step,    make_polynomial, make_cosine,
    make_exponential, make_warmup, make_warmup_cosine, make_plateau};

Schedule make_one(std::string_view text, const std::optional<Metric>& watched) {
  Spec spec(text);
  const auto* const found = std::find(kNames.begin(), kNames.end(), spec.name());
  if (found == kNames.end()) {
    throw Error(unknown_name_message("schedule", spec.name(), kNames));
  }
  Schedule schedule = kMakers.at(static_cast<std::size_t>(found - kNames.begin()))(spec, watched);
  // Neither has a position that could begin later.
  const bool placed = spec.name() != "constant" && spec.name() != "plateau";
  const double after = placed ? spec.real("after", 0, kNotNegative) : 0;
  spec.finish();
  if (after > 0) schedule = std::make_unique<DelayedSchedule>(std::move(schedule), after);
  return schedule;
}

}  // namespace

double position_of(const TrainingProgress& progress, ScheduleUnit unit) {
  switch (unit) {
    case ScheduleUnit::epochs:
      return static_cast<double>(progress.epochs) + static_cast<double>(progress.epoch_samples) /
                                                        static_cast<double>(progress.dataset_size);
    case ScheduleUnit::whole_epochs:
      return static_cast<double>(progress.epochs);
    case ScheduleUnit::steps:
      return static_cast<double>(progress.steps);
    case ScheduleUnit::samples:
      return static_cast<double>(progress.samples);
    case ScheduleUnit::iterations:
      break;
  }
  return progress.iterations;
}

void LrSchedule::load_state(std::span<const double> state) {
  if (state.empty()) return;
  throw Error(
      fmt::format("the schedule has no state, but {} numbers were kept of it", state.size()));
}

void require_rate(const LrSchedule& schedule, std::string_view name, ScheduleUnit unit) {
  if (unit != ScheduleUnit::whole_epochs || schedule.factor(0) > 0) return;
  throw Error(fmt::format(
      "the schedule {} has a rate of 0 for the whole first epoch where whole epochs are "
      "counted; accepted: the unit epochs, which counts their fractions, or a start "
      "above 0",
      name));
}

std::span<const std::string_view> lr_schedule_names() {
  return kNames;
}

Schedule make_lr_schedule(std::string_view text, const std::optional<Metric>& watched) {
  std::vector<Schedule> chain;
  for (;;) {
    const std::size_t end = text.find('+');
    chain.push_back(make_one(text.substr(0, end), watched));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (chain.size() == 1) return std::move(chain.front());
  return std::make_unique<ChainedSchedule>(std::move(chain));
}

}  // namespace rubato
