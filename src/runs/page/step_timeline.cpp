// A timeline is read twice: first for the durations of all steps, of which the median is taken, and
// then for the events of that step. Each event has a line of its own, so a file of any size is read
// without holding it in memory, and a line that is not an event is skipped. Activities become spans
// in the lanes of threads and cores, and a pair of flow events becomes a meeting of two lanes.
// Spans, meetings and lanes beyond the limits are left out.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/loop/trainer.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "runs/report/timeline.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

namespace {

// Limits of a chart.
constexpr std::size_t kMostLanes = 48;
constexpr std::size_t kMostSpans = 3000;

// A step with its number, its begin and its duration in microseconds.
struct TimedStep {
  std::int64_t step = 0;
  double begin = 0;
  double duration = 0;

  [[nodiscard]] double end() const { return begin + duration; }
};

// The lanes of threads or of cores.
struct Lanes {
  // Name of the process: "threads", or "threads of host 0" if there are several hosts.
  std::string of{};
  std::map<std::int64_t, std::string> names{};
  std::map<std::int64_t, Json> spans{};
  std::size_t count = 0;
};

// Numbers in events are not negative.
double number_of(const nlohmann::json& event, const char* key) {
  return number_at(event, key).value_or(-1);
}

std::string text_at(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void for_each_event(const std::filesystem::path& file,
                    const std::function<void(const nlohmann::json& event)>& take) {
  if (!is_there(file)) return;
  require_regular_file(file);
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with(',')) line.pop_back();
    const auto event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.contains("ph")) take(event);
  }
}

std::optional<TimedStep> median_step(const std::filesystem::path& file) {
  std::vector<TimedStep> steps;
  for_each_event(file, [&](const nlohmann::json& event) {
    const std::string name = text_at(event, "name");
    const TimedStep step{.begin = number_of(event, "ts"), .duration = number_of(event, "dur")};
    if (number_of(event, "pid") != kTrainingProcess || !name.starts_with(kStepName) ||
        step.duration < 0)
      return;
    const nlohmann::json number =
        nlohmann::json::parse(name.substr(kStepName.size()), nullptr, /*allow_exceptions=*/false);
    if (!number.is_number_integer()) return;
    steps.push_back(step);
    steps.back().step = number.get<std::int64_t>();
  });
  if (steps.empty()) return std::nullopt;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle, {}, &TimedStep::duration);
  return *middle;
}

// Index of an activity in kActivities.
std::optional<std::size_t> activity_of(const std::string& name) {
  const auto found =
      std::ranges::find(kActivities, name, [](const auto& choice) { return choice.name; });
  if (found == kActivities.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kActivities.begin());
}

// Reads one step of a timeline.
class StepReader {
 public:
  explicit StepReader(const TimedStep& step) : step_(step) {}

  void take(const nlohmann::json& event) {
    const std::string kind = text_at(event, "ph");
    const double process = number_of(event, "pid");
    const double number = number_of(event, "tid");
    if (process != kThreadsProcess && process != kCoresProcess) return;
    Lanes& lanes = process == kThreadsProcess ? threads_ : cores_;
    if (kind == "M" && text_at(event, "name") == "process_name") {
      lanes.of = text_at(event.value("args", nlohmann::json::object()), "name");
    }
    // A number outside of this range cannot be converted to a lane.
    if (number < 0 || number > kMostLaneNumber) return;
    const auto lane = static_cast<std::int64_t>(number);
    if (kind == "M" && text_at(event, "name") == "thread_name") {
      lanes.names[lane] = text_at(event.value("args", nlohmann::json::object()), "name");
    }
    const double at = number_of(event, "ts");
    if (at < step_.begin || at > step_.end()) return;
    if (kind == "X") take_span(event, at, lane, lanes);
    if (kind == "s") starts_[number_of(event, "id")] = {lane, at};
    if (kind == "f") take_meeting(number_of(event, "id"), lane, at);
  }

  [[nodiscard]] std::vector<Json> figures() const {
    std::vector<Json> figures;
    if (!threads_.spans.empty()) figures.push_back(figure(threads_, Json::array()));
    if (!cores_.spans.empty()) figures.push_back(figure(cores_, meetings_));
    return figures;
  }

 private:
  static constexpr double kMostLaneNumber = 1e9;

  [[nodiscard]] Json milliseconds(double at) const {
    return chart_number((at - step_.begin) / 1000);
  }

  void take_span(const nlohmann::json& event, double at, std::int64_t lane, Lanes& lanes) {
    const auto activity = activity_of(text_at(event, "name"));
    const nlohmann::json args = event.value("args", nlohmann::json::object());
    // A test of the previous epoch may end just where the step begins.
    if (!activity || number_of(args, "step") != static_cast<double>(step_.step)) return;
    if (kActivities.at(*activity).value == Activity::test || ++lanes.count > kMostSpans) return;
    Json& spans = lanes.spans.try_emplace(lane, Json::array()).first->second;
    Json span{*activity, milliseconds(at), milliseconds(at + number_of(event, "dur"))};
    // The span ends with its first and its last minibatch.
    const double minibatch = number_of(args, "minibatch");
    if (minibatch >= 0) {
      span.push_back(chart_number(minibatch));
      span.push_back(chart_number(minibatch + std::max(1.0, number_of(args, "minibatches")) - 1));
    }
    spans.push_back(std::move(span));
  }
  void take_meeting(double id, std::int64_t lane, double at) {
    const auto start = starts_.find(id);
    if (start == starts_.end() || meetings_.size() >= kMostSpans) return;
    const auto& [from, left] = start->second;
    meetings_.push_back({from, milliseconds(left), lane, milliseconds(at)});
  }

  [[nodiscard]] Json figure(const Lanes& lanes, const Json& meetings) const {
    const bool of_one_host = lanes.of.find(" of host ") != std::string::npos;
    Json json{{"type", "spans"},
              {"title", fmt::format("A step: what the {} did", lanes.of)},
              {"unit", "ms"},
              {"help", fmt::format("step {}, which took the median time of those in the timeline{}",
                                   step_.step, of_one_host ? "; it covers this host only" : "")},
              {"activities", Json::array()},
              {"duration", milliseconds(step_.end())},
              {"lanes", Json::array()},
              {"meetings", Json::array()},
              {"left_out", lanes.spans.size() > kMostLanes || lanes.count > kMostSpans}};
    for (const auto& choice : kActivities) json["activities"].push_back(choice.name);
    std::map<std::int64_t, std::size_t> places;
    for (const auto& [lane, spans] : lanes.spans) {
      if (places.size() == kMostLanes) break;
      places.emplace(lane, places.size());
      const auto name = lanes.names.find(lane);
      json["lanes"].push_back(
          {{"name", name == lanes.names.end() ? fmt::to_string(lane) : name->second},
           {"spans", spans}});
    }
    // Meetings refer to lanes by their index in "lanes".
    for (const Json& meeting : meetings) {
      const auto from = places.find(meeting[0].get<std::int64_t>());
      const auto to = places.find(meeting[2].get<std::int64_t>());
      if (from == places.end() || to == places.end()) continue;
      json["meetings"].push_back({from->second, meeting[1], to->second, meeting[3]});
    }
    return json;
  }

  TimedStep step_;
  Lanes threads_{.of = "threads"};
  Lanes cores_{.of = "cores"};
  std::map<double, std::pair<std::int64_t, double>> starts_{};
  Json meetings_ = Json::array();
};

}  // namespace

std::vector<Json> step_figures(const std::filesystem::path& timeline) {
  if (!is_there(timeline)) return {};
  const std::optional<TimedStep> step = median_step(timeline);
  if (!step) return {};
  StepReader reader(*step);
  for_each_event(timeline, [&](const nlohmann::json& event) { reader.take(event); });
  return reader.figures();
}

}  // namespace rubato::page
