// A result is read from the summary and in one pass over the metrics, which give the curve and the
// elasticity and must have the SHA-256 that the summary states. ElasticityReader holds each step
// back until the next one, because the last step of an epoch may have only the rest of its samples.
// DataFacts loads each data set once and keeps only numbers of it: the share of the largest class
// of its test set tells a model that has learned something from one that has not.

#include "run_result.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/report/metrics_file.hpp"
#include "runs/report/report_schemas.hpp"
#include "runs/run/workload/run_data.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

void take_clock(const RecordInfo& record, const Cells& cells, RunPoint& point) {
  point.hours = number_in(record, cells, "hours");
  point.core_hours = number_in(record, cells, "core_hours");
  point.money = number_in(record, cells, "money");
}

// Computes an Elasticity line by line.
class ElasticityReader {
 public:
  void take_step(const StepPlan& step) {
    if (last_ > 0) batches_.insert(last_);
    last_ = step.batch_size;
    cores_.insert(step.cores);
  }
  void end_epoch() {
    if (last_ > 0) rests_.insert(last_);
    last_ = 0;
  }
  [[nodiscard]] std::optional<Elasticity> elasticity() {
    end_epoch();
    // If every epoch has a single step, these last steps are all there is.
    const std::set<std::int64_t>& batches = batches_.empty() ? rests_ : batches_;
    if (batches.empty()) return std::nullopt;
    return Elasticity{.batch_sizes = std::ssize(batches),
                      .least_batch = *batches.begin(),
                      .most_batch = *batches.rbegin(),
                      .fewest_cores = *cores_.begin(),
                      .most_cores = *cores_.rbegin()};
  }

 private:
  // Batch size of the newest step, kept until it is known whether it ended its epoch; 0 if there is
  // none.
  std::int64_t last_ = 0;
  std::set<std::int64_t> batches_;
  std::set<std::int64_t> rests_;
  std::set<std::int64_t> cores_;
};

// Reads the steps and epochs of a run.
class MetricsReader {
 public:
  MetricsReader(const Measure& measure, RunResult& result) : measure_(measure), result_(result) {}

  void take(const MetricsLine& line) {
    if (line.kind() == step_schema().name) {
      const StepRecord step = line.record(step_schema());
      has_diverged_ = has_diverged_ || !(step.applied || step.skipped);
      if (step.plan.batch_size > 0) elasticity_.take_step(step.plan);
    } else if (line.kind() == epoch_schema().name) {
      take_epoch(line.cells());
    }
  }
  [[nodiscard]] std::optional<Elasticity> elasticity() { return elasticity_.elasticity(); }
  // Whether a step was not applied, or a test loss is not finite.
  [[nodiscard]] bool has_diverged() const { return has_diverged_; }

 private:
  void take_epoch(const Cells& cells) {
    const RecordInfo& info = record_info(epoch_schema().name);
    const EpochRecord record = record_of(epoch_schema(), cells);
    RunResult::Epoch epoch;
    if (!result_.curve.empty()) epoch.point = result_.curve.back().point;
    epoch.point.steps += record.steps;
    epoch.point.samples += record.samples;
    take_clock(info, cells, epoch.point);
    epoch.value = number_in(info, cells, measure_.is_accuracy ? "test_accuracy" : "test_loss");
    if (epoch.value && !std::isfinite(*epoch.value)) epoch.value.reset();
    result_.curve.push_back(epoch);
    if (record.test && !std::isfinite(record.test->loss)) has_diverged_ = true;
    elasticity_.end_epoch();
  }

  const Measure& measure_;
  RunResult& result_;
  ElasticityReader elasticity_;
  bool has_diverged_ = false;
};

void require_unchanged(const std::filesystem::path& metrics, const std::string& digest) {
  if (digest.empty() || Sha256::hex_of_file(metrics) == digest) return;
  throw_error("{}: has changed since the run ended (its SHA-256 differs from that in summary.json)",
              metrics.string());
}

ResultEnd judged(const RunResult& result, const Measure& measure) {
  if (!measure.is_accuracy) return ResultEnd::finished;
  const double learned = measure.chance + kLearned;
  if (result.best_value.value_or(0) <= learned) return ResultEnd::never_learned;
  return *result.final_value <= learned ? ResultEnd::unlearned : ResultEnd::finished;
}

}  // namespace

RunResult read_result(const std::filesystem::path& run, const Measure& measure) {
  const RecordInfo& info = record_info(summary_schema().name);
  const Cells cells = summary_cells(run / RunFolder::kSummary);
  const RunSummary summary = record_of(summary_schema(), cells);
  RunResult result{.is_accuracy = measure.is_accuracy,
                   .epochs = summary.result.epochs,
                   .last = {.steps = summary.result.steps, .samples = summary.result.samples},
                   .iterations = summary.result.iterations,
                   .wall_seconds = summary.wall_seconds};
  take_clock(info, cells, result.last);
  GrowingLines lines(run / RunFolder::kMetrics);
  require_unchanged(lines.file(), summary.metrics_sha256);
  MetricsReader metrics(measure, result);
  read_metrics(lines, [&](const MetricsLine& line) { metrics.take(line); });
  result.elasticity = metrics.elasticity();
  const auto better = [&](const auto& one, const auto& other) {
    return other.value && (!one.value || measure.better(*other.value, *one.value));
  };
  const auto best = std::ranges::max_element(result.curve, better);
  if (best != result.curve.end()) result.best_value = best->value;
  const RunEnd end = end_of(summary.end ? choice_name(kRunEnds, *summary.end) : "", summary.stopped,
                            metrics.has_diverged());
  if (end == RunEnd::diverged || end == RunEnd::out_of_devices) {
    result.end = end == RunEnd::diverged ? ResultEnd::diverged : ResultEnd::out_of_devices;
    result.reason = summary.stopped;
    return result;
  }
  result.final_value =
      number_in(info, cells, measure.is_accuracy ? "final_test_accuracy" : "final_test_loss");
  if (!result.final_value) {
    result.end = ResultEnd::failed;
    result.reason = "it ended before its first evaluation";
    return result;
  }
  result.end = judged(result, measure);
  return result;
}

RunResult read_failure(const std::filesystem::path& file) {
  RunResult result{.end = ResultEnd::failed, .reason = read_file(file)};
  while (result.reason.ends_with('\n')) result.reason.pop_back();
  return result;
}

std::optional<RunPoint> reached(const RunResult& result, const Measure& measure, double target) {
  for (const auto& [point, value] : result.curve) {
    if (value && !measure.better(target, *value)) return point;
  }
  return std::nullopt;
}

namespace {

double share_of_largest_class(const SampleSet& samples, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  const SampleRows& rows = samples.targets;
  std::vector<std::int64_t> targets(static_cast<std::size_t>(rows.elements()));
  std::vector<double> probabilities(is_real(rows.type()) ? targets.size() : 0);
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    if (!probabilities.empty()) {
      read_numbers(rows.type(), samples.target(i), probabilities.data());
      targets = {std::ranges::max_element(probabilities) - probabilities.begin()};
    } else {
      read_numbers(rows.type(), samples.target(i), targets.data());
    }
    for (const std::int64_t target : targets) ++counts[static_cast<std::size_t>(target)];
  }
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  return most / (static_cast<double>(samples.size()) * static_cast<double>(targets.size()));
}

// Configurations with the same key have the same data.
std::string data_key(const RunConfiguration& configuration) {
  const auto& held = configuration.validation;
  return fmt::format("data {} {} {} {}", configuration.data.text(), held ? held->share : 0,
                     held ? held->seed : 0, configuration.loss->of_probabilities);
}

}  // namespace

const DataFacts::Facts& DataFacts::facts_of(const RunConfiguration& configuration) {
  if (configuration.model->is_own()) {
    throw Error(
        "--model own: each run is a process of its own, without the model of another program; "
        "accepted: the name of a model (rubato list models)");
  }
  const bool classifies = configuration.model->classifies;
  const std::string key = classifies ? data_key(configuration) : configuration.model.text();
  if (const auto found = facts_.find(key); found != facts_.end()) return found->second;
  Facts facts{.measure = {.is_accuracy = classifies}};
  if (classifies) {
    // No run has begun yet, so that all CPUs are free to read.
    RunConfiguration alone = configuration;
    alone.threads = cpus().usable();
    const DataSets data = load_data(alone);
    if (!data.test) {
      throw_error("--data {}: it has no test set to compare by; accepted: with --validation",
                  configuration.data.text());
    }
    const std::int64_t classes = data.probabilities ? data.train.targets.elements() : data.classes;
    facts.measure.is_accuracy = classes > 0;
    if (classes > 0) facts.measure.chance = share_of_largest_class(*data.test, classes);
    facts.samples = data.train.size();
    facts.shape = shape_of(data);
  } else {
    facts.samples = configuration.model->own_samples().value();
  }
  return facts_.emplace(key, facts).first->second;
}

const Measure& DataFacts::measure_of(const RunConfiguration& configuration) {
  return facts_of(configuration).measure;
}

void DataFacts::require_steps(const RunConfiguration& configuration) {
  // This check depends on neither the seed nor the rule nor the learning rate, so configurations
  // that differ only in these are checked once.
  RunConfiguration same = configuration;
  same.seed = 0;
  same.rule = "constant";
  same.learning_rate = 1;
  if (!checked_.insert(to_toml(same)).second) return;
  const Facts& facts = facts_of(configuration);
  const RunSteps steps = load_run_steps(configuration);
  rubato::require_steps(configuration, {.steps = steps, .samples = facts.samples, .source = [&] {
                                          return make_step_source(
                                              configuration, steps,
                                              known_gradient_bytes(configuration, facts.shape));
                                        }});
}

void DataFacts::require_runnable(std::span<const PlannedRun> runs) {
  for (const PlannedRun& run : runs) {
    try {
      require_steps(run.configuration);
    } catch (const Error& error) {
      throw_error("{} (of the run {})", error.what(), run.name);
    }
    if (measure_of(run.configuration).is_accuracy ==
        measure_of(runs.front().configuration).is_accuracy) {
      continue;
    }
    throw_error(
        "--model: {} has an accuracy, and {} has none; accepted: models that have one, or models "
        "that have none",
        runs.front().configuration.model.text(), run.configuration.model.text());
  }
}

}  // namespace rubato
