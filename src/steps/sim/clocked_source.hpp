#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/steps/market.hpp>
#include <rubato/steps/market_policy.hpp>
#include <rubato/steps/modelled_time.hpp>

namespace rubato {

/// The clock of a ClockedSource. It stands after the steps taken, and simulates the next one: in
/// whole for its source, or one decision at a time for OptimumSearch, from where that puts it.
class ClockedSource::Clock {
 public:
  /// The arguments are those of ClockedSource's constructor.
  Clock(Zones zones, StepOfDevices step_of, ClockOptions options,
        std::unique_ptr<BatchPolicy> batch);
  /// Takes the clock out of a source.
  [[nodiscard]] static std::unique_ptr<Clock> of(std::unique_ptr<ClockedSource> source) {
    return std::move(source->clock_);
  }

  /// A step that has ended, or the reason why there is none, and the time then.
  struct Outcome {
    std::optional<TraceStep> step{};
    ClockTime end{};
    /// Duration of the successful attempt, without a checkpoint.
    double seconds = 0;
    Fleet fleet{};
    /// The market that the fleet is of; empty while there is none.
    std::optional<std::size_t> place{0};
    /// The zone that has the state.
    std::size_t zone = 0;
    /// True if the state before the step was saved after a warning.
    bool saved = false;
    std::vector<NamedNumber> inputs{};
    SourceEnd::Cause cause = SourceEnd::Cause::out_of_devices;
  };
  /// Simulates the next step; valid until the next call. look_ahead() does so only if nobody has
  /// since the last step was taken.
  const Outcome& simulate(const SourceProgress& progress);
  [[nodiscard]] const Outcome& look_ahead(const SourceProgress& progress);
  /// Takes the step that simulate() has returned. Throws Error without one.
  void take(const TraceStep& step, const SourceProgress& after);

  /// The next step, between two decisions of the market policy.
  struct PendingStep {
    Outcome at{};
    /// If it is set, it is used instead of the market policy.
    std::optional<MarketChoice> choice{};
    /// True if there were too few devices, and if training has come to another place: a move takes
    /// the state along.
    bool idle = false;
    bool has_moved = false;
    /// The steps to repeat, a part of unsaved(), and how many of them have been.
    std::span<const std::int64_t> lost_steps{};
    std::size_t redone = 0;
  };
  [[nodiscard]] PendingStep begin() const;
  /// Makes at most so many decisions; empty if the step has no outcome after them.
  [[nodiscard]] std::optional<Outcome> advance(PendingStep& pending, const SourceProgress& progress,
                                               std::int64_t most_decisions) const;

  /// The step offered to a number of devices, with its cores, if they are enough for one; and the
  /// number of these cores, or 0.
  [[nodiscard]] std::optional<TraceStep> step_with(std::int64_t devices,
                                                   const SourceProgress& progress) const;
  [[nodiscard]] std::int64_t cores_with(std::int64_t devices, const SourceProgress& progress) const;

  [[nodiscard]] const ClockOptions& options() const { return options_; }
  /// The places: the spot market of each zone and, if there are any, the on-demand devices.
  [[nodiscard]] const std::vector<Market>& markets() const { return markets_; }
  /// Null if the offered steps are taken unchanged.
  [[nodiscard]] const BatchPolicy* batch() const { return batch_.get(); }
  [[nodiscard]] const ClockTime& time() const { return time_; }
  [[nodiscard]] std::string where(StepIndex step) const;
  /// With Loses::checkpoint, the minibatches of each step since the last checkpoint.
  [[nodiscard]] const std::vector<std::int64_t>& unsaved() const { return unsaved_; }
  /// Puts the clock after so many steps; the rest of its state is in PendingStep.
  void put_after(std::int64_t steps, const std::vector<std::int64_t>& unsaved) {
    steps_ = steps;
    unsaved_ = unsaved;
  }
  /// Saves or loads the clock, for StepSource::visit_state().
  void visit_state(StateVisitor& state, std::int64_t steps);

 private:
  // Limits of the clock that must not be passed before another step ends.
  struct Limit {
    double seconds = std::numeric_limits<double>::infinity();
    double core_seconds = std::numeric_limits<double>::infinity();
    double money = std::numeric_limits<double>::infinity();
  };
  // A step, or the repetition of one, that begins now on some devices.
  struct Attempt {
    BatchDecision decision{};
    std::int64_t devices = 0;
    std::int64_t cores = 0;
    // Its duration, with a checkpoint if one follows, and that without.
    double seconds = 0;
    double step_seconds = 0;
    // The first time before its end at which it lacks a core or fails, or would if a notice were
    // true; the time at which that is known, and the devices that stay.
    std::optional<double> loss{};
    double known = 0;
    std::int64_t staying = 0;
    bool is_false = false;
  };
  // The choice of a place, and whether training has other devices than before.
  struct Decided {
    MarketChoice choice{.place = 0};
    bool moved = false;
  };

  // The remainder of the budget.
  [[nodiscard]] Limit limit_of(const Budget& budget) const;
  // The outcome if there are never enough devices for a step again. Throws Error if the
  // availability must not end before training does.
  [[nodiscard]] Outcome ended(const ClockTime& time, const SourceProgress& progress) const;
  // The policy's decision on an offered step.
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const;
  // The attempt with that many devices at a time: at the next step, or, with minibatches, at
  // repeating one of as many. Empty if there are too few devices.
  [[nodiscard]] std::optional<Attempt> attempt_with(std::int64_t devices, const Outcome& at,
                                                    std::optional<std::int64_t> minibatches,
                                                    const SourceProgress& progress) const;
  // Lets the market policy decide, unless there is a choice already, and goes where it says.
  [[nodiscard]] Decided decide_place(Outcome& at, const std::optional<MarketChoice>& choice,
                                     const SourceProgress& progress) const;
  [[nodiscard]] MarketView view_of(const Outcome& at, const SourceProgress& progress) const;
  // True if the state has to be moved to train at a place.
  [[nodiscard]] bool moves_state(const Outcome& at, std::size_t place) const {
    return steps_ > 0 && place < zones_.all().size() && place != at.zone;
  }
  // The next time at which devices that there are or might be change.
  [[nodiscard]] std::optional<double> next_event(const Outcome& at, double again) const;
  // Advances the clock to `end`, at the cost of `cores` cores, each until it leaves, and of what is
  // paid for beside them. False if the limit is reached first; the clock then shows it.
  [[nodiscard]] bool pass(Outcome& at, double end, std::int64_t cores, const Limit& limit,
                          const SourceProgress& progress) const;
  // True if a step costs its cores at a constant price and nothing else costs anything.
  [[nodiscard]] bool is_plain() const { return !options_.market && markets_[0].is_plain(); }
  // Throws Error for a time that is too late.
  void require_time(double seconds, const SourceProgress& progress) const;
  [[nodiscard]] std::string binding() const;
  // A hash of the numbers of devices and their times until `end`.
  [[nodiscard]] std::string devices_until(double end) const;

  StepOfDevices step_of_;
  ClockOptions options_;
  Zones zones_;
  std::vector<Market> markets_;
  std::unique_ptr<BatchPolicy> batch_;
  // Mutable because it caches its results.
  mutable StepTimes times_;
  ClockTime time_;
  Fleet fleet_;
  std::optional<std::size_t> place_{0};
  std::size_t zone_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> unsaved_;
  // The outcome of simulate() for the next step; empty while nobody has asked.
  std::optional<Outcome> ahead_;
};

}  // namespace rubato
