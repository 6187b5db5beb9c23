// Planning finds out for each counterfactual what must be trained, and whether anything must. If
// the steps depend on the trace alone, foreseen_steps() simulates them: with the batches of the run
// the bits are the same, too, and only times and substeps are replaced (with_times_of()). Otherwise
// a fork begins before the first change that is left out, and its length is that of the simulation,
// or that of the run if it cannot be foreseen. The steps of a run of several segments are foreseen
// only if its last options reproduce all of them (foresees_run()).

#include "counterfactuals.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

constexpr std::string_view kPreemptions = "preemptions";
constexpr std::string_view kAllChanges = "all-changes";

bool is_change(const RunEvent& event) {
  return event.kind != RunEvent::Kind::fault;
}

// The steps of a training that depend on nothing but its trace.
struct ForeseenSteps {
  std::vector<NextStep> steps{};
  SimulationResult result{};
};

std::optional<ForeseenSteps> foreseen_steps(const RunConfiguration& run, const RunSteps& schedule,
                                            const Workload& workload) {
  if (has_batch_policy(run) || run.iterations) return std::nullopt;
  ForeseenSteps foreseen;
  const auto source = make_step_source(run, schedule, workload.gradient_bytes());
  foreseen.result = simulate(
      *source, plan_options(run, workload.samples(), run.epochs),
      [&](const SimulatedStep& step) { foreseen.steps.push_back(step); }, budget_of(run));
  return foreseen;
}

// True if all steps that the run has taken have the same batches.
bool has_batches_of(const RecordedTraining& training, const ForeseenSteps& foreseen) {
  const auto count = std::ssize(training.steps);
  const bool ended_itself =
      training.outcome.end == RunEnd::stopped || training.outcome.end == RunEnd::diverged;
  const auto others = std::ssize(foreseen.steps);
  if (ended_itself ? others < count : others != count) return false;
  return std::equal(training.steps.begin(), training.steps.end(), foreseen.steps.begin(),
                    [](const RecordedTraining::Step& step, const NextStep& other) {
                      return step.batch_size == other.plan.batch_size;
                    });
}

// The outcome of a training of the same bits with other cores.
TrainingOutcome with_times_of(const ForeseenSteps& foreseen, TrainingOutcome outcome) {
  const auto at = [&](std::int64_t steps) {
    return as_recorded(foreseen.steps.at(static_cast<std::size_t>(steps - 1)).time);
  };
  for (TrainingOutcome::Epoch& epoch : outcome.epochs) {
    if (epoch.steps > 0) epoch.time = at(epoch.steps);
  }
  const bool whole = outcome.steps == std::ssize(foreseen.steps);
  outcome.time = whole ? as_recorded(foreseen.result.time) : at(outcome.steps);
  outcome.substeps =
      std::accumulate(foreseen.steps.begin(), foreseen.steps.begin() + outcome.steps,
                      std::int64_t{0}, [](std::int64_t sum, const NextStep& step) {
                        return sum + minibatches_of(step.plan.minibatches, step.plan.cores);
                      });
  return outcome;
}

std::int64_t epochs_until(const TrainingOutcome& outcome, std::int64_t steps) {
  return std::ranges::count_if(outcome.epochs,
                               [&](const auto& epoch) { return epoch.steps < steps; });
}

class Planning {
 public:
  Planning(const WhatIfRequest& request, const RunHistory& history, const RunEvents& events,
           const RecordedTraining& training, const Workload& workload)
      : request_(request),
        history_(history),
        events_(events),
        training_(training),
        workload_(workload),
        is_foreseeable_(history.segments().size() == 1 || foresees_run()) {}

  void add(std::string name, std::vector<std::size_t> left_out, bool keeps = false) {
    PlannedCounterfactual planned{.history = history_};
    Counterfactual& one = planned.counterfactual;
    one.name = std::move(name);
    one.steps = training_.outcome.steps;
    for (const std::size_t event : left_out) {
      if (is_change(list()[event])) one.steps = std::min(one.steps, list()[event].steps);
    }
    one.same_bits =
        std::ranges::none_of(left_out, [&](std::size_t event) { return is_change(list()[event]); });
    if (one.same_bits) one.outcome = training_.outcome;
    planned.schedule = events_.without({left_out.begin(), left_out.end()}, keeps);
    one.events = std::move(left_out);
    foresee(planned, *planned.schedule);
    planned_.push_back(std::move(planned));
  }

  void add_changed() {
    const auto first = std::ranges::find_if(list(), is_change);
    PlannedCounterfactual planned{.history = history_.with(request_.change)};
    planned.counterfactual.name = fmt::format("with {}", request_.changes);
    planned.counterfactual.steps = first == list().end() ? 0 : first->steps;
    foresee(planned, load_run_steps(planned.history.segments().back().configuration));
    planned_.push_back(std::move(planned));
  }

  [[nodiscard]] std::vector<PlannedCounterfactual> take() && { return std::move(planned_); }

 private:
  [[nodiscard]] const std::vector<RunEvent>& list() const { return events_.events(); }

  // Whether the options of the last steps foresee all steps of the run. A fork may have changed
  // what decides about steps, such as the devices that a core of the clock has.
  [[nodiscard]] bool foresees_run() const {
    const auto foreseen =
        foreseen_steps(request_.configuration, events_.without({}, false), workload_);
    if (!foreseen || foreseen->steps.size() < training_.steps.size()) return false;
    return std::equal(training_.steps.begin(), training_.steps.end(), foreseen->steps.begin(),
                      [](const RecordedTraining::Step& step, const NextStep& other) {
                        const auto time = as_recorded(other.time);
                        return step.batch_size == other.plan.batch_size &&
                               step.cores == other.plan.cores &&
                               step.time.has_value() == time.has_value() &&
                               (!time || step.time->seconds == time->seconds);
                      });
  }

  void foresee(PlannedCounterfactual& planned, const RunSteps& schedule) const {
    Counterfactual& one = planned.counterfactual;
    if (one.same_bits) return;
    const auto first = training_.steps.begin();
    const std::int64_t before =
        std::accumulate(first, first + one.steps, std::int64_t{0},
                        [](std::int64_t sum, const auto& step) { return sum + step.batch_size; });
    const std::int64_t epochs = epochs_until(training_.outcome, one.steps);
    planned.steps = training_.outcome.steps - one.steps;
    planned.samples = training_.outcome.samples - before;
    planned.epochs = std::ssize(training_.outcome.epochs) - epochs;
    if (!is_foreseeable_) return;
    const auto foreseen =
        foreseen_steps(planned.history.segments().back().configuration, schedule, workload_);
    if (!foreseen) return;
    planned.steps = foreseen->result.steps - one.steps;
    planned.samples = foreseen->result.samples - before;
    planned.epochs = foreseen->result.epochs - epochs;
    if (one.events.empty() || !has_batches_of(training_, *foreseen)) return;
    one.same_bits = true;
    one.outcome = with_times_of(*foreseen, training_.outcome);
  }

  const WhatIfRequest& request_;
  const RunHistory& history_;
  const RunEvents& events_;
  const RecordedTraining& training_;
  const Workload& workload_;
  bool is_foreseeable_;
  std::vector<PlannedCounterfactual> planned_;
};

std::vector<std::size_t> all_of(const std::vector<RunEvent>& events) {
  std::vector<std::size_t> all(events.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// "1, 2, 7", or "1 to 40, 9 of them" if there are too many for a line.
std::string numbers_of(const std::vector<std::size_t>& events) {
  constexpr std::size_t kMost = 6;
  if (events.size() > kMost) {
    return fmt::format("{} to {}, {} of them", events.front() + 1, events.back() + 1,
                       events.size());
  }
  const auto numbers = vector_of(events, [](std::size_t event) { return event + 1; });
  return fmt::format("{}", fmt::join(numbers, ", "));
}

}  // namespace

std::vector<std::size_t> parse_events(const std::string& text,
                                      const std::vector<RunEvent>& events) {
  std::set<std::size_t> found;
  for (const std::string_view piece : split_at(text, ',')) {
    if (piece.starts_with('@')) {
      const std::int64_t step =
          parse_whole(piece.substr(1), 1, std::max<std::int64_t>(1, events.back().steps + 1));
      const std::size_t before = found.size();
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i].steps + 1 == step) found.insert(i);
      }
      if (found.size() == before) {
        throw_error("there is no event in step {}; accepted: @STEP as --list prints it", step);
      }
      continue;
    }
    found.insert(static_cast<std::size_t>(parse_whole(piece, 1, std::ssize(events)) - 1));
  }
  return {found.begin(), found.end()};
}

std::vector<PlannedCounterfactual> planned_counterfactuals(const WhatIfRequest& request,
                                                           const RunHistory& history,
                                                           const RunEvents& events,
                                                           const RecordedTraining& training,
                                                           const Workload& workload) {
  const std::vector<RunEvent>& list = events.events();
  Planning planning(request, history, events, training, workload);
  if (list.empty()) {
    throw_error(
        "{}: its steps all have the same batch and cores, and no core died: there is nothing to "
        "leave out; accepted: a run with a trace whose rows differ",
        request.run.string());
  }
  if (request.without == kPreemptions) {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == RunEvent::Kind::taken) taken.push_back(i);
    }
    if (taken.empty()) {
      throw_error("--without {}: no devices were taken from {}; accepted: {}, or events of --list",
                  kPreemptions, request.run.string(), kAllChanges);
    }
    planning.add(fmt::format("without {}", kPreemptions), std::move(taken), /*keeps=*/true);
  } else if (request.without == kAllChanges) {
    planning.add("without all changes", all_of(list));
  } else {
    std::vector<std::size_t> chosen;
    try {
      chosen = request.without.empty() ? all_of(list) : parse_events(request.without, list);
    } catch (const Error& error) {
      throw_error("--without {}: {}, {} or {}", request.without, error.what(), kPreemptions,
                  kAllChanges);
    }
    for (const std::size_t event : chosen) {
      planning.add(fmt::format("without event {}", event + 1), {event});
    }
    if (chosen.size() > 1) {
      std::string name = chosen.size() == list.size()
                             ? "without all changes"
                             : fmt::format("without events {}", numbers_of(chosen));
      planning.add(std::move(name), std::move(chosen));
    }
  }
  if (request.change) planning.add_changed();
  return std::move(planning).take();
}

}  // namespace rubato
