#include "experiment/run_result.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>

#include "core/file.hpp"

namespace rubato {

namespace {

constexpr std::array<Choice<RunEnd>, 6> kRunEnds{{{RunEnd::finished, "finished"},
                                                  {RunEnd::never_learned, "never learned"},
                                                  {RunEnd::unlearned, "unlearned"},
                                                  {RunEnd::diverged, "diverged"},
                                                  {RunEnd::failed, "failed"},
                                                  {RunEnd::missing, "missing"}}};

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

// Of a line of the metrics: false where the run diverged with it.
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

// The epochs, and whether the run diverged: a step that was not applied, or a test loss that is no
// number. Other lines, most of them, are not parsed.
bool read_curve(const std::filesystem::path& file, const Measure& measure, RunResult& result) {
  std::ifstream lines(file);
  bool good = true;
  for (std::string text; std::getline(lines, text);) {
    if (text.find(R"("kind":"epoch")") != std::string::npos) {
      good = take_epoch(nlohmann::json::parse(text), measure, result) && good;
    } else if (text.find(R"("applied":false)") != std::string::npos &&
               text.find(R"("skipped":true)") == std::string::npos) {
      good = false;
    }
  }
  return good;
}

RunEnd end_of(const RunResult& result, const Measure& measure) {
  if (!measure.is_accuracy) return RunEnd::finished;
  const double learned = measure.chance + kLearned;
  if (result.best_value.value_or(0) <= learned) return RunEnd::never_learned;
  return *result.final_value <= learned ? RunEnd::unlearned : RunEnd::finished;
}

}  // namespace

std::string_view name_of(RunEnd end) {
  return choice_name(kRunEnds, end);
}

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
    const bool good = read_curve(run / "metrics.jsonl", measure, result);
    const auto better = [&](const auto& one, const auto& other) {
      return other.value && (!one.value || measure.better(*other.value, *one.value));
    };
    const auto best = std::ranges::max_element(result.curve, better);
    if (best != result.curve.end()) result.best_value = best->value;
    if (!good) {
      result.end = RunEnd::diverged;
      result.reason = summary.at("stopped").is_string() ? summary.at("stopped") : "";
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
    throw Error(
        fmt::format("{}: is no summary of a run ({}); accepted: a run folder that nobody "
                    "has changed",
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

}  // namespace rubato
