#include "run_result.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_data.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

std::optional<double> number_at(const nlohmann::json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

void take_clock(const nlohmann::json& json, RunPoint& point) {
  const auto clock = json.find("clock");
  if (clock == json.end()) return;
  point.hours = number_at(*clock, "hours");
  point.money = number_at(*clock, "money");
}

// Adds an epoch's line of the metrics to the result. Returns false if the run diverged in this
// epoch.
bool take_epoch(const nlohmann::json& line, const Measure& measure, RunResult& result) {
  RunResult::Epoch epoch;
  if (!result.curve.empty()) epoch.point = result.curve.back().point;
  epoch.point.steps += line.value("steps", std::int64_t{0});
  epoch.point.samples += line.value("samples", std::int64_t{0});
  take_clock(line, epoch.point);
  epoch.value = number_at(line, measure.is_accuracy ? "test_accuracy" : "test_loss");
  result.curve.push_back(epoch);
  const auto loss = line.find("test_loss");
  return loss == line.end() || !loss->is_null();
}

// Finds the whole number that follows a key, without parsing the line.
std::optional<std::int64_t> whole_behind(std::string_view key, std::string_view line) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = line.data() + at + key.size();
  if (std::from_chars(begin, line.data() + line.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

// Computes an Elasticity line by line.
class ElasticityReader {
 public:
  void take_step(std::string_view line) {
    const auto batch = whole_behind(R"("batch":)", line);
    const auto cores = whole_behind(R"("cores":)", line);
    if (!batch || !cores) return;
    if (last_ > 0) batches_.insert(last_);
    last_ = *batch;
    cores_.insert(*cores);
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

// Reads the epochs. Returns false if the run diverged: a step was not applied, or a test loss is
// not finite. All other lines, which are most of them, are not parsed.
bool read_metrics(const std::filesystem::path& file, const Measure& measure, RunResult& result) {
  std::ifstream lines(file);
  ElasticityReader elasticity;
  bool good = true;
  for (std::string text; std::getline(lines, text);) {
    if (text.find(R"("kind":"epoch")") != std::string::npos) {
      good = take_epoch(nlohmann::json::parse(text), measure, result) && good;
      elasticity.end_epoch();
      continue;
    }
    if (text.find(R"("kind":"step")") != std::string::npos) elasticity.take_step(text);
    if (text.find(R"("applied":false)") != std::string::npos &&
        text.find(R"("skipped":true)") == std::string::npos) {
      good = false;
    }
  }
  result.elasticity = elasticity.elasticity();
  return good;
}

void require_unchanged(const std::filesystem::path& metrics, const nlohmann::json& summary) {
  const auto digest = summary.find("metrics_sha256");
  if (digest == summary.end() || !digest->is_string()) return;
  if (Sha256::hex_of_file(metrics) == digest->get<std::string>()) return;
  throw Error(
      fmt::format("{}: has changed since the run ended (its SHA-256 differs from that in "
                  "summary.json)",
                  metrics.string()));
}

RunEnd end_of(const RunResult& result, const Measure& measure) {
  if (!measure.is_accuracy) return RunEnd::finished;
  const double learned = measure.chance + kLearned;
  if (result.best_value.value_or(0) <= learned) return RunEnd::never_learned;
  return *result.final_value <= learned ? RunEnd::unlearned : RunEnd::finished;
}

}  // namespace

RunResult read_result(const std::filesystem::path& run, const Measure& measure) {
  const std::filesystem::path file = run / "summary.json";
  try {
    const nlohmann::json summary = nlohmann::json::parse(read_file(file));
    RunResult result{.is_accuracy = measure.is_accuracy,
                     .epochs = summary.at("epochs"),
                     .last = {.steps = summary.at("steps"), .samples = summary.at("samples")},
                     .iterations = summary.at("iterations"),
                     .wall_seconds = summary.at("wall_seconds")};
    take_clock(summary, result.last);
    require_unchanged(run / "metrics.jsonl", summary);
    const bool good = read_metrics(run / "metrics.jsonl", measure, result);
    const auto better = [&](const auto& one, const auto& other) {
      return other.value && (!one.value || measure.better(*other.value, *one.value));
    };
    const auto best = std::ranges::max_element(result.curve, better);
    if (best != result.curve.end()) result.best_value = best->value;
    const nlohmann::json& reason = summary.at("stopped");
    const std::string stopped = reason.is_string() ? reason.get<std::string>() : std::string();
    if (!good || stopped == kOutOfDevices) {
      result.end = good ? RunEnd::out_of_devices : RunEnd::diverged;
      result.reason = stopped;
      return result;
    }
    result.final_value =
        number_at(summary, measure.is_accuracy ? "final_test_accuracy" : "final_test_loss");
    if (!result.final_value) {
      result.end = RunEnd::failed;
      result.reason = "it ended before its first evaluation";
      return result;
    }
    result.end = end_of(result, measure);
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not a run's summary, or its metrics are damaged ({})",
                            file.string(), error.what()));
  }
}

RunResult read_failure(const std::filesystem::path& file) {
  RunResult result{.end = RunEnd::failed, .reason = read_file(file)};
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
  std::vector<std::int64_t> targets(static_cast<std::size_t>(samples.targets.elements()));
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.targets.type(), samples.target(i), targets.data());
    for (const std::int64_t target : targets) ++counts[static_cast<std::size_t>(target)];
  }
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  return most / (static_cast<double>(samples.size()) * static_cast<double>(targets.size()));
}

// Configurations with the same key have the same data.
std::string data_key(const RunConfiguration& configuration) {
  const auto& held = configuration.validation;
  return fmt::format("data {} {} {}", configuration.data.text(), held ? held->share : 0,
                     held ? held->seed : 0);
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
    const DataSets data = load_data(configuration);
    if (!data.test) {
      throw Error(
          fmt::format("--data {}: it has no test set to compare by; accepted: with --validation",
                      configuration.data.text()));
    }
    facts.measure.is_accuracy = data.classes > 0;
    if (data.classes > 0) facts.measure.chance = share_of_largest_class(*data.test, data.classes);
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
      throw Error(fmt::format("{} (of the run {})", error.what(), run.name));
    }
    if (measure_of(run.configuration).is_accuracy ==
        measure_of(runs.front().configuration).is_accuracy) {
      continue;
    }
    throw Error(
        fmt::format("--model: {} has an accuracy, and {} has none; accepted: models that "
                    "have one, or models that have none",
                    runs.front().configuration.model.text(), run.configuration.model.text()));
  }
}

}  // namespace rubato
