#include "time_figures.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runs/page/thinned/buckets_json.hpp"

namespace rubato::page {

namespace {

struct Part {
  const char* name;
  double value;
};
using Parts = std::vector<Part>;

double number_at(const nlohmann::json& json, const char* key) {
  if (!json.is_object()) return 0;
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

Parts wall_parts(const ThinnedRun& run) {
  const RunTimes& times = run.times;
  // The time of observers, checkpoints and the start of the program; known only after the run has
  // ended.
  const double rest = number_at(run.summary, "wall_seconds") - times.wall - times.test;
  return {{"gradients", std::max(0.0, times.wall - times.exchange - times.update)},
          {"exchange between hosts", times.exchange},
          {"update", times.update},
          {"evaluation", times.test},
          {"files and the rest", std::max(0.0, rest)}};
}

Parts thread_parts(const ThinnedRun& run) {
  return {{"gathering samples", run.times.data},
          {"forward and backward", run.times.compute},
          {"summing gradients", run.times.reduce}};
}

Parts clock_parts(const ThinnedRun& run) {
  const auto& [idle, lost, restart, restarts] = run.clock;
  const double steps = run.last[Axis::hours] - idle - lost - restart;
  return {{"steps", std::max(0.0, steps)},
          {"lost attempts", lost},
          {"restarts", restart},
          {"without devices", idle}};
}

Json bars(const char* title, const char* unit, const char* help, std::span<const ThinnedRun> runs,
          Parts (*parts_of)(const ThinnedRun&)) {
  Json json{{"type", "bars"}, {"title", title}, {"unit", unit}, {"help", help}};
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ThinnedRun& run = runs[i];
    Json parts = Json::array();
    double sum = 0;
    for (const auto& [name, value] : parts_of(run)) {
      parts.push_back({{"name", name}, {"value", chart_number(value)}});
      sum += value;
    }
    if (sum > 0) {
      json["rows"].push_back({{"run", i}, {"label", run.name}, {"parts", std::move(parts)}});
    }
  }
  return json;
}

}  // namespace

std::vector<Json> time_figures(std::span<const ThinnedRun> runs) {
  std::vector<Json> figures{
      bars("Time on this machine", "seconds", "from the first step to the last evaluation", runs,
           wall_parts),
      bars("Time of the threads", "seconds", "in the gradients, all threads together", runs,
           thread_parts),
      bars("Modelled time", "hours", "on the modelled cluster", runs, clock_parts)};
  std::erase_if(figures, [](const Json& figure) { return figure["rows"].empty(); });
  return figures;
}

}  // namespace rubato::page
