// A schedule is a function of the position in training; except for plateau, which remembers the
// watched metric, and one-cycle, which has a momentum, too, the built-in ones are closures over
// their arguments (LambdaSchedule). kSchedules has a row for each of them, and a user's own
// schedules are looked up first (make_one()). A text with several parts joined by '+' gives their
// product (ChainedSchedule), and `after` moves the beginning of a part (DelayedSchedule). Powers
// and cosines are those of portable_math.hpp, so that the rates have the same bits on every
// machine.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/numbers/lr_schedule.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "lr_schedules.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMostObservations = 1'000'000'000;
constexpr std::int64_t kLargestMult = 1'000'000;
constexpr RealRange kInsideShare{0, 1, false, false, "a number between 0 and 1"};
constexpr Required kTotal{"90"};
constexpr Required kLength{"5"};

constexpr std::array<Choice<ThresholdMode>, 2> kThresholdModes{
    {{ThresholdMode::relative, "rel"}, {ThresholdMode::absolute, "abs"}}};

using Schedule = std::unique_ptr<LrSchedule>;

// Wraps another schedule so that its position 0 is at `begin`; before that the factor is its value
// at 0.
class DelayedSchedule final : public LrSchedule {
 public:
  DelayedSchedule(Schedule schedule, double begin)
      : schedule_(std::move(schedule)), begin_(begin) {}
  [[nodiscard]] double factor(double position) const override {
    return schedule_->factor(std::max(0.0, position - begin_));
  }
  [[nodiscard]] std::optional<double> momentum(double position) const override {
    return schedule_->momentum(std::max(0.0, position - begin_));
  }
  [[nodiscard]] std::optional<double> end() const override {
    const auto end = schedule_->end();
    return end ? std::optional(begin_ + *end) : std::nullopt;
  }
  void observe(double metric) override { schedule_->observe(metric); }
  [[nodiscard]] bool watches() const override { return schedule_->watches(); }
  void visit_state(NumberVisitor& numbers) override { schedule_->visit_state(numbers); }

 private:
  Schedule schedule_;
  double begin_;
};

// The product of several schedules, of which at most one has a momentum.
class ChainedSchedule final : public LrSchedule {
 public:
  explicit ChainedSchedule(std::vector<Schedule> schedules) : schedules_(std::move(schedules)) {}
  [[nodiscard]] double factor(double position) const override {
    double product = 1;
    for (const Schedule& schedule : schedules_) product *= schedule->factor(position);
    return product;
  }
  [[nodiscard]] std::optional<double> momentum(double position) const override {
    for (const Schedule& schedule : schedules_) {
      if (const auto momentum = schedule->momentum(position)) return momentum;
    }
    return std::nullopt;
  }
  // The last end of those that have one: the others only multiply what is left.
  [[nodiscard]] std::optional<double> end() const override {
    std::optional<double> last;
    for (const Schedule& schedule : schedules_) last = std::max(last, schedule->end());
    return last;
  }
  void observe(double metric) override {
    for (const Schedule& schedule : schedules_) schedule->observe(metric);
  }
  [[nodiscard]] bool watches() const override {
    return std::ranges::any_of(schedules_, &LrSchedule::watches, &Schedule::operator*);
  }
  void visit_state(NumberVisitor& numbers) override {
    for (const Schedule& schedule : schedules_) numbers.part(*schedule);
  }

 private:
  std::vector<Schedule> schedules_;
};

template <class Factor>
Schedule by_position(Factor factor, std::optional<double> end = {}) {
  return std::make_unique<LambdaSchedule>(std::move(factor), end);
}

double warmup_factor(double x, double length, double start) {
  return x >= length ? 1 : start + (1 - start) * (x / length);
}

double cosine_factor(double x, double total, double floor) {
  const double done = std::min(1.0, x / total);
  return floor + (1 - floor) * 0.5 * (1 + exact::cos_of_turns(0.5 * done));
}

Schedule make_constant(Spec& spec) {
  const double value = spec.real("value", 1, kNotNegative);
  return by_position([=](double) { return value; });
}

Schedule make_step(Spec& spec) {
  const double every = spec.real("every", Required{"30"}, kPositive);
  const double gamma = spec.real("gamma", 0.1, kPositive);
  return by_position([=](double x) { return exact::pow(gamma, std::floor(x / every)); });
}

Schedule make_multi_step(Spec& spec) {
  std::vector<double> milestones = spec.reals("at", Required{"30/60/80"}, kNotNegative);
  const double gamma = spec.real("gamma", 0.1, kPositive);
  if (!std::ranges::is_sorted(milestones)) {
    spec.reject("at", "milestones descend; accepted: ascending ones");
  }
  return by_position([gamma, milestones = std::move(milestones)](double x) {
    const auto passed = std::ranges::upper_bound(milestones, x);
    return exact::pow(gamma, static_cast<double>(passed - milestones.begin()));
  });
}

Schedule make_polynomial(Spec& spec) {
  const double total = spec.real("total", kTotal, kPositive);
  const double power = spec.real("power", 2, kPositive);
  const double floor = spec.real("floor", 0, kShare);
  return by_position(
      [=](double x) {
        return floor + (1 - floor) * exact::pow(std::max(0.0, 1 - x / total), power);
      },
      total);
}

// Loshchilov and Hutter 2017, "SGDR", without restarts.
Schedule make_cosine(Spec& spec) {
  const double total = spec.real("total", kTotal, kPositive);
  const double floor = spec.real("floor", 0, kShare);
  return by_position([=](double x) { return cosine_factor(x, total, floor); }, total);
}

// The same paper's restarts: each period begins at a factor of 1 and is `mult` times as long as the
// one before it.
Schedule make_cosine_restarts(Spec& spec) {
  const double first = spec.real("first", Required{"10"}, kPositive);
  const auto mult = static_cast<double>(spec.whole("mult", 1, 1, kLargestMult));
  const double floor = spec.real("floor", 0, kShare);
  return by_position([=](double x) {
    if (mult == 1) return cosine_factor(std::fmod(x, first), first, floor);
    double begin = 0;
    double period = first;
    for (; x >= begin + period; period *= mult) begin += period;
    return cosine_factor(x - begin, period, floor);
  });
}

Schedule make_exponential(Spec& spec) {
  const double gamma = spec.real("gamma", 0.95, kPositive);
  return by_position([=](double x) { return exact::pow(gamma, x); });
}

// Goyal et al. 2017, section 2.2.
Schedule make_warmup(Spec& spec) {
  const double length = spec.real("length", kLength, kPositive);
  const double start = spec.real("start", 0, kShare);
  return by_position([=](double x) { return warmup_factor(x, length, start); });
}

Schedule make_warmup_cosine(Spec& spec) {
  const double warmup = spec.real("warmup", kLength, kPositive);
  const double total = spec.real("total", kTotal, kPositive);
  if (total <= warmup) {
    spec.reject("total",
                fmt::format("{} is not above the warm-up's {}; accepted: more", total, warmup));
  }
  return by_position(
      [=](double x) {
        return x < warmup ? warmup_factor(x, warmup, 0)
                          : cosine_factor(x - warmup, total - warmup, 0);
      },
      total);
}

void read_cycle_momentum(Spec& spec, OneCycleOptions& options) {
  OneCycleOptions::Momentum momentum;
  const bool moves = spec.flag("cycle-momentum", true);
  momentum.base = spec.real("base-momentum", momentum.base, kBelowOne);
  momentum.max = spec.real("max-momentum", momentum.max, kBelowOne);
  if (moves) {
    options.momentum = momentum;
    return;
  }
  options.momentum.reset();
  for (const std::string_view key : {"base-momentum", "max-momentum"}) {
    spec.refuse(key, "does nothing with cycle-momentum=false; accepted: without that");
  }
}

Schedule make_one_cycle(Spec& spec) {
  OneCycleOptions options;
  options.total = spec.real("total", kTotal, kPositive);
  options.peak = spec.real("peak", Unset{"0.3 total"}, kPositive).value_or(0.3 * options.total);
  options.start = spec.real("start", options.start, kShare);
  options.floor = spec.real("floor", options.floor, kShare);
  options.annealing = spec.choice("anneal", options.annealing, kAnnealings);
  options.three_phase = spec.flag("three-phase", options.three_phase);
  read_cycle_momentum(spec, options);
  if (options.three_phase ? 2 * options.peak > options.total : options.peak >= options.total) {
    spec.reject("peak", fmt::format("{} is too late in a cycle of {}; accepted: {}", options.peak,
                                    options.total,
                                    options.three_phase ? "at most its half" : "less than that"));
  }
  return std::make_unique<OneCycle>(options);
}

// The watched metric decides if larger is better.
MetricMode plateau_mode(Spec& spec, const std::optional<WatchedMetric>& watched) {
  const auto mode = spec.choice("mode", Unset{"as --watch"}, kMetricModes);
  const MetricMode usual = watched ? watched->mode() : MetricMode::min;
  if (watched && mode.value_or(usual) != usual) {
    spec.reject("mode",
                fmt::format("{} is watched, which is better when it is {}; accepted: {}",
                            watched->name(), usual == MetricMode::min ? "smaller" : "larger",
                            choice_name(kMetricModes, usual)));
  }
  return mode.value_or(usual);
}

Schedule make_plateau(Spec& spec, const std::optional<WatchedMetric>& watched) {
  ReduceOnPlateauOptions options;
  options.mode = plateau_mode(spec, watched);
  options.factor = spec.real("factor", options.factor, kInsideShare);
  options.patience = spec.whole("patience", options.patience, 0, kMostObservations);
  options.threshold = spec.real("threshold", options.threshold, kNotNegative);
  options.threshold_mode = spec.choice("threshold-mode", options.threshold_mode, kThresholdModes);
  options.cooldown = spec.whole("cooldown", options.cooldown, 0, kMostObservations);
  options.floor = spec.real("floor", options.floor, kShare);
  return std::make_unique<ReduceOnPlateau>(options);
}

struct ScheduleRow {
  std::string_view name;
  std::string_view help;
  // Null for plateau, which depends on the watched metric.
  Schedule (*make)(Spec& spec) = nullptr;
  // True if the schedule depends on the position and so can begin later.
  bool placed = true;
};

constexpr std::array<ScheduleRow, 11> kSchedules{
    {{"constant", "value", make_constant, false},
     {"step", "gamma^floor(x / every)", make_step},
     {"multi-step", "gamma^(milestones reached)", make_multi_step},
     {"polynomial", "floor + (1 - floor) (1 - x / total)^power", make_polynomial},
     {"cosine", "floor + (1 - floor) (1 + cos(pi x / total)) / 2", make_cosine},
     {"cosine-restarts",
      "the cosine again and again, in periods of first, first mult, first mult^2",
      make_cosine_restarts},
     {"exponential", "gamma^x", make_exponential},
     {"warmup", "start + (1 - start) x / length, then 1", make_warmup},
     {"warmup-cosine", "a warm-up from 0, then the cosine until total", make_warmup_cosine},
     {"one-cycle",
      "from start to 1 at peak, then to floor at total; the momentum moves the other way",
      make_one_cycle},
     {"plateau",
      "falls by factor when the watched metric has not improved for more than patience epochs",
      nullptr, false}}};

Schedule delayed(Schedule schedule, Spec& spec) {
  const double after = spec.real("after", 0, kNotNegative);
  if (after > 0) schedule = std::make_unique<DelayedSchedule>(std::move(schedule), after);
  return schedule;
}

// Reads the row's arguments without calling finish().
Schedule read_schedule(const ScheduleRow& row, Spec& spec,
                       const std::optional<WatchedMetric>& watched) {
  Schedule schedule = row.make == nullptr ? make_plateau(spec, watched) : row.make(spec);
  return row.placed ? delayed(std::move(schedule), spec) : std::move(schedule);
}

Schedule read_own(const OwnSchedules::Row& row, Spec& spec) {
  Schedule schedule;
  try {
    schedule = row.make(spec);
  } catch (...) {
    rethrow_of_maker("schedule", row.name);
  }
  if (schedule == nullptr) {
    throw_error("schedule '{}' is made as null; accepted: any but null", row.name);
  }
  return delayed(std::move(schedule), spec);
}

Schedule make_one(Spec spec, const std::optional<WatchedMetric>& watched, const OwnSchedules& own) {
  const auto* const row = own.find(spec.name());
  Schedule schedule =
      row != nullptr ? read_own(*row, spec)
                     : read_schedule(find_row("schedule", spec.name(), kSchedules), spec, watched);
  spec.finish();
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

void require_rate(const LrSchedule& schedule, std::string_view name, ScheduleUnit unit) {
  if (unit != ScheduleUnit::whole_epochs || schedule.factor(0) > 0) return;
  throw_error(
      "the schedule {} has a rate of 0 for the whole first epoch where whole epochs are counted; "
      "accepted: the unit epochs, which counts their fractions, or a start above 0",
      name);
}

std::vector<std::string_view> lr_schedule_names() {
  return row_names(kSchedules);
}

std::vector<Strategy> lr_schedules() {
  return strategies_of(kSchedules, [](const ScheduleRow& row, Spec& spec) {
    static_cast<void>(read_schedule(row, spec, {}));
  });
}

template <>
ScheduleChoice ScheduleChoice::built_in(std::string_view text) {
  return choose_lr_schedule(text, OwnSchedules("schedule", lr_schedule_names));
}

ScheduleChoice choose_lr_schedule(std::string_view text, const OwnSchedules& own) {
  std::vector<Spec> parts;
  std::vector<std::string> names;
  for (const std::string_view part : split_at(text, '+')) {
    names.push_back(parts.emplace_back(part).name());
  }
  const auto make = [parts, own](const std::optional<WatchedMetric>& watched) -> Schedule {
    std::vector<Schedule> chain =
        vector_of(parts, [&](const Spec& part) { return make_one(part, watched, own); });
    if (chain.size() == 1) return std::move(chain.front());
    if (std::ranges::count_if(chain, &LrSchedule::moves_momentum, &Schedule::operator*) > 1) {
      throw Error(
          "two parts of the schedule set the momentum; accepted: one of them, as one-cycle does "
          "not with cycle-momentum=false");
    }
    return std::make_unique<ChainedSchedule>(std::move(chain));
  };
  return {text, std::move(names), make, std::nullopt};
}

}  // namespace rubato
