// recorded_training() reads the metrics in one pass: lines of steps give batches, cores and
// substeps, lines of epochs the results, and lines of faults precede the line of their step. Times
// are rounded as files round them (as_recorded()), so that those of a simulation and those of a run
// can be compared for equality. A TrainingOutcome is also written as JSON and read back, because
// the outcomes of forks are kept in files.

#include "recorded_training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/report/metrics_file.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato {

namespace fs = std::filesystem;

double TrainingOutcome::loss() const {
  if (end == RunEnd::diverged || epochs.empty()) return std::numeric_limits<double>::quiet_NaN();
  return epochs.back().loss;
}

std::optional<double> TrainingOutcome::accuracy() const {
  if (end == RunEnd::diverged || epochs.empty()) return std::nullopt;
  return epochs.back().accuracy;
}

const TrainingOutcome::Epoch* TrainingOutcome::reached(const LearningTarget& target) const {
  const auto found = std::ranges::find_if(epochs, [&](const Epoch& epoch) {
    return target.accuracy ? epoch.accuracy && *epoch.accuracy >= *target.accuracy
                           : target.loss && epoch.loss <= *target.loss;
  });
  return found == epochs.end() ? nullptr : &*found;
}

double TrainingOutcome::lost_seconds() const {
  return time ? time->idle_seconds + time->lost_seconds + time->restart_seconds : 0;
}

std::optional<ClockTime> as_recorded(std::optional<ClockTime> time) {
  if (!time) return std::nullopt;
  for (const RecordColumn<ClockTime>& column : clock_schema().columns) {
    if (column.is_writable()) static_cast<void>(column.write(*time, column.read(*time)));
  }
  return time;
}

namespace {

std::optional<ClockTime> clock_time(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  ClockTime time;
  for (const RecordColumn<ClockTime>& column : clock_schema().columns) {
    const nlohmann::json& value = json.at(column.info().json_key());
    const bool is_whole = column.info().type == ColumnType::whole;
    static_cast<void>(
        column.write(time, is_whole ? Cell(value.get<std::int64_t>()) : Cell(value.get<double>())));
  }
  return time;
}

double number_of(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

JsonForm<TrainingOutcome> outcome_form() {
  using Outcome = TrainingOutcome;
  using Epoch = Outcome::Epoch;
  constexpr const char* kClockHelp = "the modelled clock then; null in real time";
  return form_of_object<Outcome>(
      {{"end", "how it ended, as in summary.json", &Outcome::end, form_of_choice(kRunEnds)},
       {"steps", "steps that were taken", &Outcome::steps},
       {"samples", "samples that they showed", &Outcome::samples},
       {"substeps", "minibatches of the busiest core, summed over the steps", &Outcome::substeps},
       {"clock", kClockHelp, &Outcome::time, clock_form()},
       {"epochs", "each epoch", &Outcome::epochs,
        form_of_object<Epoch>(
            {{"steps", "steps of the training until its end", &Epoch::steps},
             {"samples", "samples of the training until its end", &Epoch::samples},
             {"clock", kClockHelp, &Epoch::time, clock_form()},
             {"loss", "on the test set, or of the training; null if it is not finite",
              [](const Epoch& epoch) {
                return std::isfinite(epoch.loss) ? std::optional(epoch.loss) : std::nullopt;
              }},
             {"accuracy", "on the test set, from 0 to 1; null if there is none",
              &Epoch::accuracy}})}});
}

TrainingOutcome training_outcome(const nlohmann::json& json) {
  try {
    TrainingOutcome outcome{
        .steps = json.at("steps"),
        .samples = json.at("samples"),
        .substeps = json.at("substeps"),
        .time = clock_time(json.at("clock")),
        .end = parse_choice("end", json.at("end").get<std::string>(), kRunEnds)};
    for (const nlohmann::json& epoch : json.at("epochs")) {
      outcome.epochs.push_back({.steps = epoch.at("steps"),
                                .samples = epoch.at("samples"),
                                .time = clock_time(epoch.at("clock")),
                                .loss = number_of(epoch.at("loss")),
                                .accuracy = number_at(epoch, "accuracy")});
    }
    return outcome;
  } catch (const nlohmann::json::exception& error) {
    throw_error("not the outcome of a training: {}", error.what());
  }
}

namespace {

// Adds the line of a fault: several cores may die in one attempt at a step, and then each line has
// the same number of cores that are left.
void add_fault(const FaultOfStep& line, std::int64_t& cores_left,
               std::vector<RecordedTraining::Fault>& faults) {
  const std::int64_t step = line.step.value();
  const bool is_new = faults.empty() || faults.back().step != step;
  if (is_new) faults.push_back({.step = step});
  RecordedTraining::Fault& fault = faults.back();
  if (is_new || cores_left != line.cores_left) ++fault.attempts;
  fault.cores.push_back(line.fault.core.value());
  cores_left = line.cores_left;
}

}  // namespace

RecordedTraining recorded_training(const fs::path& run, std::int64_t minibatch) {
  const fs::path file = run / RunFolder::kMetrics;
  require_metrics(file);
  if (!is_there(run / RunFolder::kSummary)) {
    throw_error("{} has not ended; accepted: a run with results (rubato train --resume)",
                run.string());
  }
  const RunSummary summary = read_summary(run / RunFolder::kSummary);
  RecordedTraining training{.weights_sha256 = summary.weights_sha256};
  TrainingOutcome& outcome = training.outcome;
  double train_seconds = 0;
  double test_seconds = 0;
  std::int64_t cores_left = 0;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() == step_schema().name) {
      const StepRecord step = line.record(step_schema());
      // The step in which a run diverged was not taken.
      if (!step.applied && !step.skipped) return;
      training.steps.push_back(
          {.batch_size = step.plan.batch_size, .cores = step.plan.cores, .time = step.time});
      const std::int64_t minibatches = minibatches_of(step.plan.batch_size, minibatch);
      if (!training.faults.empty() && training.faults.back().step == step.plan.index.value()) {
        training.faults.back().minibatches = training.faults.back().attempts * minibatches;
      }
      outcome.samples += step.plan.batch_size;
      outcome.substeps += minibatches_of(minibatches, step.plan.cores);
      train_seconds += step.seconds.wall;
    } else if (line.kind() == epoch_schema().name) {
      const EpochRecord epoch = line.record(epoch_schema());
      training.has_test = epoch.test.has_value();
      outcome.epochs.push_back({.steps = std::ssize(training.steps),
                                .samples = outcome.samples,
                                .time = epoch.time,
                                .loss = epoch.test ? epoch.test->loss : epoch.train_loss,
                                .accuracy = epoch.test ? epoch.test->accuracy : std::nullopt});
      test_seconds += epoch.test_seconds;
    } else if (line.kind() == fault_schema().name) {
      add_fault(line.record(fault_schema()), cores_left, training.faults);
    }
  });
  outcome.steps = std::ssize(training.steps);
  outcome.time = summary.result.time;
  outcome.end = summary.end.value_or(RunEnd::completed);
  if (outcome.samples > 0) {
    training.seconds_per_sample = train_seconds / static_cast<double>(outcome.samples);
  }
  if (!outcome.epochs.empty()) {
    training.seconds_per_epoch = test_seconds / static_cast<double>(outcome.epochs.size());
  }
  return training;
}

}  // namespace rubato
