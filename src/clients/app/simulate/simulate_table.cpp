#include "simulate_table.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/tables/text_table.hpp"
#include "base/core/text/hour.hpp"
#include "base/core/text/or_null.hpp"
#include "clients/app/line/grouped.hpp"
#include "clients/app/line/modelled_time.hpp"
#include "loop/train/records/record_schemas.hpp"
#include "runs/report/record_json.hpp"

namespace rubato::app {

namespace {

std::string cores_text(const SimulatedTraining& training) {
  return training.fewest_cores == training.most_cores
             ? fmt::to_string(training.most_cores)
             : fmt::format("{} to {}", training.fewest_cores, training.most_cores);
}

}  // namespace

std::string simulation_table(std::span<const SimulatedRun> runs, LineWidth width) {
  std::vector<std::string> header;
  std::vector<Column> columns;
  for (const auto& option : runs.front().options) {
    header.push_back(option.first);
    columns.push_back(Column::left);
  }
  bool money = false;
  bool ends = false;
  bool hosts = false;
  for (const SimulatedRun& run : runs) {
    money = money || run.training.result.time.value_or(ClockTime()).money > 0;
    ends = ends || !ended_by(run.training.result).empty();
    hosts = hosts || run.training.host_bytes > 0;
  }
  for (const char* name : {"epochs", "steps", "mean batch", "cores", "time", "core-hours"}) {
    header.emplace_back(name);
    columns.push_back(Column::right);
  }
  if (money) header.emplace_back("money"), columns.push_back(Column::right);
  if (hosts) header.emplace_back("bytes/step"), columns.push_back(Column::right);
  for (const char* name : {"idle", "lost", "restarting", "restarts"}) {
    header.emplace_back(name);
    columns.push_back(Column::right);
  }
  if (ends) header.emplace_back("ended by"), columns.push_back(Column::left);
  TextTable table(columns, 0, runs.front().options.size());
  table.add(header);
  for (const SimulatedRun& run : runs) {
    const SimulationResult& result = run.training.result;
    const ClockTime time = result.time.value_or(ClockTime());
    std::vector<std::string> row;
    for (const auto& option : run.options) row.push_back(option.second);
    row.push_back(grouped(result.epochs));
    row.push_back(grouped(result.steps));
    row.push_back(fmt::format("{:.0f}", run.training.mean_batch));
    row.push_back(cores_text(run.training));
    row.push_back(modelled_time(time.seconds));
    row.push_back(fmt::format("{:.4g}", time.core_seconds / kSecondsOfHour));
    if (money) row.push_back(fmt::format("{:.4g}", time.money));
    if (hosts) row.push_back(grouped(std::llround(run.training.host_bytes)));
    row.push_back(modelled_time(time.idle_seconds));
    row.push_back(modelled_time(time.lost_seconds));
    row.push_back(modelled_time(time.restart_seconds));
    row.push_back(grouped(time.restarts));
    if (ends) row.push_back(ended_by(result));
    table.add(row);
  }
  return table.text(width);
}

std::string simulation_json(std::span<const SimulatedRun> runs) {
  auto list = nlohmann::ordered_json::array();
  for (const SimulatedRun& run : runs) {
    nlohmann::ordered_json options = nlohmann::ordered_json::object();
    for (const auto& [name, value] : run.options) options[name] = value;
    const SimulationResult& result = run.training.result;
    const std::string end = ended_by(result);
    list.push_back(
        {{"options", options},
         {"epochs", result.epochs},
         {"steps", result.steps},
         {"samples", result.samples},
         {"mean_batch", run.training.mean_batch},
         {"cores", {{"fewest", run.training.fewest_cores}, {"most", run.training.most_cores}}},
         {"host_bytes_per_step", run.training.host_bytes},
         {"clock", json_of(clock_schema(), result.time.value_or(ClockTime())).at("clock")},
         {"ended_by", or_null(end)}});
  }
  return json_text(list, 2) + "\n";
}

}  // namespace rubato::app
