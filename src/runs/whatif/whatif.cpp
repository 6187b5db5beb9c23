// WhatIf plans, trains and collects. A counterfactual with the bits of the run needs no fork; for
// any other, a Fork is kept under the file of its outcome, whose name is a hash of its steps and
// options and of the run's weights, so that a fork that is needed twice is trained once and an
// interrupted command finds the outcomes that it has. Forks are trained in the order of their first
// steps, because the state of the run at one is the beginning from which it is repeated to the
// next. The run's own speed gives the estimate of seconds, which limits the events that are left
// out alone.

#include "whatif.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "counterfactuals.hpp"
#include "runs/run/fork.hpp"
#include "runs/run/resumption.hpp"

namespace rubato {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFolder = "whatif";
constexpr double kSecondsOfMinute = 60;
// Seeds of successive epochs are successive numbers, so other orders are as far apart.
constexpr std::uint64_t kBetweenSeeds = 1'000'003;

// A training to be done: of a counterfactual, or of the run itself with another order of samples.
struct Fork {
  // The position of its counterfactual; that of the run itself has the one for which it is needed
  // first.
  std::size_t of = 0;
  std::string name{};
  std::int64_t steps = 0;
  RunHistory history;
  std::optional<RunSteps> schedule{};
  fs::path file{};
  std::int64_t to_train = 0;
  double seconds = 0;
  std::optional<TrainingOutcome> outcome{};
};

// The steps that follow, as text.
std::string text_of(const std::optional<RunSteps>& schedule, std::int64_t from) {
  if (!schedule) return "the run's";
  std::ostringstream text;
  if (const auto* const zones = std::get_if<Zones>(&*schedule)) {
    zones->only().write_csv(text);
    text << choice_name(kTraceEnds, zones->end());
    return text.str();
  }
  const auto& trace = std::get<Trace>(*schedule);
  const auto& rows = trace.steps();
  const auto first = std::min(static_cast<std::size_t>(from), rows.size() - 1);
  text << Trace({rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end()}, trace.end(), "")
              .to_csv()
       << choice_name(kTraceEnds, trace.end());
  return text.str();
}

// The file for the outcome of a fork. It has another name if anything else is to be trained.
fs::path file_of(const fs::path& run, const RecordedTraining& training, const Fork& fork) {
  Sha256 sha;
  sha.add(fmt::format("whatif 2\n{}\n{}\n{}\n", training.weights_sha256, fork.steps,
                      text_of(fork.schedule, fork.steps)));
  for (const RunSegment& segment : fork.history.segments()) {
    RunConfiguration configuration = with_paths_from(run, segment.configuration);
    configuration.threads = 1;
    sha.add(fmt::format("{}\n{}\n", segment.begin, to_toml(configuration)));
  }
  constexpr std::size_t kDigits = 16;
  return run / kFolder / (std::move(sha).hex().substr(0, kDigits) + ".json");
}

// Records the outcome of a fork, which begins with that of the run up to there.
class OutcomeRecorder final : public Observer {
 public:
  OutcomeRecorder(TrainingOutcome& outcome, std::int64_t minibatch,
                  std::function<void(Training&)> between_steps)
      : outcome_(outcome), minibatch_(minibatch), between_steps_(std::move(between_steps)) {}

  void on_step(Training& /*training*/, const StepRecord& step) override {
    if (!step.applied && !step.skipped) return;
    outcome_.substeps +=
        minibatches_of(minibatches_of(step.plan.batch_size, minibatch_), step.plan.cores);
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    outcome_.epochs.push_back({.steps = training.result().steps,
                               .samples = training.result().samples,
                               .time = as_recorded(epoch.time),
                               .loss = epoch.test ? epoch.test->loss : epoch.train_loss,
                               .accuracy = epoch.test ? epoch.test->accuracy : std::nullopt});
  }
  void between_steps(Training& training) override { between_steps_(training); }

 private:
  TrainingOutcome& outcome_;
  std::int64_t minibatch_;
  std::function<void(Training&)> between_steps_;
};

// The history of the run, to train it again. Throws Error if its records are not those that it
// wrote.
RunHistory history_of(const WhatIfRequest& request) {
  const RunHistory history = RunHistory::of(request.run, request.configuration);
  history.require_unchanged();
  return history.with([](RunConfiguration& run) { run.log_minibatches = false; });
}

class WhatIf {
 public:
  WhatIf(const WhatIfRequest& request, const WhatIfParts& parts)
      : request_(request),
        parts_(parts),
        training_(recorded_training(request.run, request.configuration.minibatch)),
        history_(history_of(request)) {}

  WhatIfResult execute();

 private:
  [[nodiscard]] std::shared_ptr<const Workload> workload_of(const RunConfiguration& run) const;
  void leave_out_smallest(std::vector<PlannedCounterfactual>& planned,
                          const std::vector<RunEvent>& events);
  void add_forks(const PlannedCounterfactual& planned, std::size_t of);
  void add_fork(Fork fork, const PlannedCounterfactual& planned);
  [[nodiscard]] double seconds_of_fork(const PlannedCounterfactual& planned) const {
    return static_cast<double>(planned.samples) * training_.seconds_per_sample +
           static_cast<double>(planned.epochs) * training_.seconds_per_epoch;
  }
  [[nodiscard]] double seconds_of(const PlannedCounterfactual& planned) const {
    const auto forks = 1 + 2 * static_cast<double>(request_.seeds);
    return planned.counterfactual.same_bits ? 0 : forks * seconds_of_fork(planned);
  }
  void conclude_plan();
  void train_all();
  [[nodiscard]] TrainingOutcome train(const Fork& fork, const State& state) const;
  void report_progress(const Fork* fork, std::int64_t step, double seconds) const;
  void collect();

  const WhatIfRequest& request_;
  const WhatIfParts& parts_;
  RecordedTraining training_;
  RunHistory history_;
  // Loaded once for all trainings of the same data and model.
  mutable std::map<std::string, std::shared_ptr<const Workload>> workloads_;
  WhatIfResult result_;
  // The keys are their files, because the same fork may be needed twice.
  std::map<fs::path, Fork> forks_;
  // For each counterfactual its fork, then with each seed its own and that of the run.
  std::vector<std::vector<fs::path>> files_;
  double done_seconds_ = 0;
  std::int64_t done_forks_ = 0;
};

std::shared_ptr<const Workload> WhatIf::workload_of(const RunConfiguration& run) const {
  // The order of the samples is the trainer's, but initial weights depend on the seed: those of a
  // fork are in its state.
  RunConfiguration key = run;
  key.seed = request_.configuration.seed;
  auto& workload = workloads_[to_toml(key)];
  if (workload == nullptr) workload = parts_.load(key);
  return workload;
}

void WhatIf::leave_out_smallest(std::vector<PlannedCounterfactual>& planned,
                                const std::vector<RunEvent>& events) {
  const auto is_single = [&](const PlannedCounterfactual& one) {
    return one.counterfactual.events.size() == 1 && !one.counterfactual.same_bits;
  };
  if (!request_.most && !request_.without.empty()) return;
  std::vector<std::pair<double, std::size_t>> sizes;
  double seconds = 0;
  for (const PlannedCounterfactual& one : planned) {
    if (is_single(one)) {
      const std::size_t event = one.counterfactual.events.front();
      sizes.emplace_back(-events[event].size(), event);
    } else {
      seconds += seconds_of(one);
    }
  }
  std::ranges::sort(sizes);
  std::vector<bool> kept(events.size(), false);
  std::int64_t count = 0;
  for (const auto& [size, event] : sizes) {
    const auto one = std::ranges::find_if(planned, [&, event = event](const auto& other) {
      return is_single(other) && other.counterfactual.events.front() == event;
    });
    seconds += seconds_of(*one);
    const bool fits = request_.most ? count < *request_.most
                                    : seconds <= WhatIfRequest::kMinutes * kSecondsOfMinute;
    if (!fits && (request_.most || count > 0)) break;
    kept[event] = true;
    ++count;
  }
  result_.plan.events_skipped = std::ssize(sizes) - count;
  std::erase_if(planned, [&](const PlannedCounterfactual& one) {
    return is_single(one) && !kept[one.counterfactual.events.front()];
  });
}

void WhatIf::add_fork(Fork fork, const PlannedCounterfactual& planned) {
  fork.file = file_of(request_.run, training_, fork);
  fork.to_train = planned.steps;
  fork.seconds = seconds_of_fork(planned);
  if (is_there(fork.file)) {
    try {
      fork.outcome = training_outcome(nlohmann::json::parse(read_file(fork.file)));
    } catch (const std::exception& error) {
      parts_.report(fmt::format("{} is damaged, and its fork is trained again: {}",
                                fork.file.string(), error.what()));
    }
  }
  files_.back().push_back(fork.file);
  forks_.try_emplace(fork.file, std::move(fork));
}

void WhatIf::add_forks(const PlannedCounterfactual& planned, std::size_t of) {
  files_.emplace_back();
  const Counterfactual& one = planned.counterfactual;
  if (one.same_bits) return;
  Fork fork{.of = of,
            .name = one.name,
            .steps = one.steps,
            .history = planned.history,
            .schedule = planned.schedule};
  add_fork(fork, planned);
  for (std::int64_t i = 1; i <= request_.seeds; ++i) {
    const auto reorder = [i](RunConfiguration& run) {
      run.seed += static_cast<std::uint64_t>(i) * kBetweenSeeds;
    };
    fork.history = planned.history.with(reorder);
    fork.name = fmt::format("{}, order {}", one.name, i + 1);
    add_fork(fork, planned);
    add_fork({.of = of,
              .name = fmt::format("the run, order {}", i + 1),
              .steps = one.steps,
              .history = history_.with(reorder)},
             planned);
  }
}

void WhatIf::conclude_plan() {
  WhatIfPlan& plan = result_.plan;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  for (const auto& [file, fork] : forks_) {
    if (fork.outcome) {
      ++plan.trained;
      continue;
    }
    ++plan.forks;
    plan.steps += fork.to_train;
    plan.seconds += fork.seconds;
    first = std::min(first, fork.steps);
    last = std::max(last, fork.steps);
  }
  if (plan.forks == 0) return;
  // The run is repeated from its nearest checkpoint, which may be its beginning.
  std::int64_t begin = 0;
  for (const RunCheckpoint& one : history_.checkpoints()) {
    if (one.step <= first) begin = std::max(begin, one.step);
  }
  plan.repeated = last - begin;
  for (std::int64_t step = begin; step < last; ++step) {
    plan.seconds +=
        static_cast<double>(training_.steps[static_cast<std::size_t>(step)].batch_size) *
        training_.seconds_per_sample;
  }
}

void WhatIf::report_progress(const Fork* fork, std::int64_t step, double seconds) const {
  if (!parts_.on_step) return;
  const double all = result_.plan.seconds;
  parts_.on_step({.fork = fork == nullptr ? 0 : done_forks_ + 1,
                  .name = fork == nullptr ? "" : fork->name,
                  .step = step,
                  .share = all > 0 ? std::min(1.0, (done_seconds_ + seconds) / all) : 0});
}

TrainingOutcome WhatIf::train(const Fork& fork, const State& state) const {
  TrainingOutcome outcome;
  for (const TrainingOutcome::Epoch& epoch : training_.outcome.epochs) {
    if (epoch.steps < fork.steps) outcome.epochs.push_back(epoch);
  }
  for (std::int64_t step = 0; step < fork.steps; ++step) {
    const auto& taken = training_.steps[static_cast<std::size_t>(step)];
    outcome.substeps += minibatches_of(
        minibatches_of(taken.batch_size, request_.configuration.minibatch), taken.cores);
  }
  State from = state;
  // With the options that the run has in each of its steps.
  for (std::size_t i = fork.history.of_step(fork.steps + 1);
       i < fork.history.segments().size() && outcome.end != RunEnd::diverged; ++i) {
    const RunConfiguration& configuration = fork.history.segments()[i].configuration;
    Run run(configuration, workload_of(configuration),
            RunLocation::fork({}, {.state = std::exchange(from, {}), .records = {}}), {},
            fork.schedule);
    const std::int64_t end = fork.history.end_of(i);
    run.trainer().add_observer<OutcomeRecorder>(
        outcome, configuration.minibatch, [&](Training& training) {
          const std::int64_t steps = training.result().steps;
          if (steps >= end) training.pause();
          const double done = static_cast<double>(steps - fork.steps) /
                              static_cast<double>(std::max<std::int64_t>(1, fork.to_train));
          report_progress(&fork, steps, std::min(1.0, done) * fork.seconds);
        });
    // A fork changes the state, even if it takes no step.
    if (run.trainer().result().steps < end) outcome.end = run.execute().end;
    const TrainResult& result = run.trainer().result();
    outcome.steps = result.steps;
    outcome.samples = result.samples;
    outcome.time = as_recorded(result.time);
    if (end < RunHistory::kEver && outcome.end != RunEnd::diverged) from = run.trainer().state();
  }
  return outcome;
}

void WhatIf::train_all() {
  std::vector<Fork*> forks;
  for (auto& [file, fork] : forks_) {
    if (!fork.outcome) forks.push_back(&fork);
  }
  if (forks.empty()) return;
  std::ranges::stable_sort(forks, [](const Fork* one, const Fork* other) {
    return std::tie(one->steps, one->of, one->name) <
           std::tie(other->steps, other->of, other->name);
  });
  const ReplayParts parts{
      .load = [this](const RunConfiguration& run) { return workload_of(run); },
      .report = parts_.report,
      .on_step = [this](std::int64_t step) { report_progress(nullptr, step, 0); }};
  std::optional<StateOfStep> at;
  for (Fork* const fork : forks) {
    if (!at || at->step < fork->steps) {
      at = StateOfStep{
          .step = fork->steps,
          .state = state_after(history_, fork->steps, {}, parts, at ? &*at : nullptr).state};
    }
    fork->outcome = train(*fork, at->state);
    fs::create_directories(fork->file.parent_path());
    write_file(fork->file, json_text(outcome_form().write(*fork->outcome)) + "\n");
    done_seconds_ += fork->seconds;
    ++done_forks_;
  }
}

void WhatIf::collect() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    Counterfactual& one = result_.counterfactuals[i];
    if (one.same_bits) continue;
    const auto outcome = [&](std::size_t k) { return *forks_.at(files_[i].at(k)).outcome; };
    one.outcome = outcome(0);
    for (std::size_t k = 1; k < files_[i].size(); k += 2) {
      one.others.push_back(
          {.seed = forks_.at(files_[i][k]).history.segments().back().configuration.seed,
           .outcome = outcome(k),
           .run = outcome(k + 1)});
    }
  }
}

LearningTarget target_of(const WhatIfRequest& request, const TrainingOutcome& run) {
  if (request.target.accuracy || request.target.loss) return request.target;
  if (const auto accuracy = run.accuracy()) return {.accuracy = accuracy};
  return {.loss = run.loss()};
}

// A bound on the samples of a training of these options.
std::int64_t most_samples(const RunConfiguration& run, const Workload& workload) {
  const std::int64_t all = run.epochs * workload.samples();
  return run.samples ? std::min(all, *run.samples) : all;
}

WhatIfResult WhatIf::execute() {
  if (!request_.configuration.exact) {
    throw_error(
        "{} was trained with --exact=false: what it computes may depend on chance, and so would "
        "the effects; accepted: a run without it",
        request_.run.string());
  }
  const auto workload = workload_of(history_.segments().back().configuration);
  const RunEvents events(history_.segments(), training_,
                         most_samples(request_.configuration, *workload));
  result_.events = events.events();
  result_.run = training_.outcome;
  result_.has_test = training_.has_test;
  result_.target = target_of(request_, training_.outcome);
  auto planned = planned_counterfactuals(request_, history_, events, training_, *workload);
  leave_out_smallest(planned, result_.events);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    add_forks(planned[i], i);
    result_.plan.same_bits += planned[i].counterfactual.same_bits ? 1 : 0;
    result_.counterfactuals.push_back(planned[i].counterfactual);
  }
  result_.plan.counterfactuals = std::ssize(planned);
  conclude_plan();
  if (parts_.on_plan) parts_.on_plan(result_.plan);
  train_all();
  collect();
  fs::create_directories(whatif_file(request_.run).parent_path());
  write_file(whatif_file(request_.run), json_text(whatif_form().write(result_), 1) + "\n");
  return std::move(result_);
}

}  // namespace

std::vector<const Counterfactual*> WhatIfResult::singles() const {
  return pointers_to(counterfactuals,
                     [](const Counterfactual& one) { return one.events.size() == 1; });
}

const Counterfactual* WhatIfResult::together() const {
  const auto found = std::ranges::find_if(
      counterfactuals, [](const Counterfactual& one) { return one.events.size() > 1; });
  return found == counterfactuals.end() ? nullptr : &*found;
}

std::vector<RunEvent> events_of_run(const WhatIfRequest& request) {
  return RunEvents(history_of(request).segments(),
                   recorded_training(request.run, request.configuration.minibatch), 0)
      .events();
}

WhatIfResult what_if(const WhatIfRequest& request, const WhatIfParts& parts) {
  return WhatIf(request, parts).execute();
}

fs::path whatif_file(const fs::path& run) {
  return run / kFolder / "whatif.json";
}

}  // namespace rubato
