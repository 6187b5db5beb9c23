#include "bench_output.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/text_table.hpp"
#include "runs/lab/measure.hpp"

namespace rubato::app {

namespace {

constexpr double kGiga = 1e9;

// "12.3 us", "4.56 ms", "1.20 s": three digits.
std::string duration(double seconds) {
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit unit : {Unit{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}) {
    if (seconds < unit.size && unit.size != 1e-6) continue;
    const double value = seconds / unit.size;
    return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit.name);
  }
  return {};
}

std::string moved_gigabytes(const BenchRow& row) {
  if (row.bytes_moved == 0) return "-";
  return fmt::format("{:.2f}", row.moved_bandwidth() / kGiga);
}

std::string share_of_triad(const BenchRow& row) {
  if (row.bytes_moved == 0) return "-";
  return fmt::format("{:.0f} %", 100 * row.moved_bandwidth() / row.triad);
}

}  // namespace

std::string bench_header(LineWidth width) {
  TextTable table({Column::left, Column::left});
  for (const auto& [name, value] : lab::environment()) table.add({name, value});
  return table.text(width);
}

std::string bench_table(std::span<const BenchRow> rows, LineWidth width) {
  if (rows.empty()) return {};
  std::vector<const BenchRow*> sorted;
  for (const BenchRow& row : rows) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const BenchRow* a, const BenchRow* b) {
    return a->seconds.median < b->seconds.median;
  });
  TextTable table({Column::left, Column::right, Column::right, Column::right, Column::right,
                   Column::right, Column::left});
  table.add(
      {"strategy", "median", "min - max", "buffer GB/s", "moved GB/s", "of triad", "reproducible"});
  for (const BenchRow* row : sorted) {
    table.add({row->strategy, duration(row->seconds.median),
               fmt::format("{} - {}", duration(row->seconds.min), duration(row->seconds.max)),
               fmt::format("{:.2f}", row->algorithm_bandwidth() / kGiga), moved_gigabytes(*row),
               share_of_triad(*row), row->reproducible ? "yes" : "no"});
  }
  const BenchRow& first = rows.front();
  return fmt::format(
             "\n{} cores x {} floats{}, {} threads, {} arrival, {} cache; STREAM triad {:.1f} "
             "GB/s\n\n",
             first.task.cores, first.task.size, first.task.fused ? ", with the update" : "",
             first.threads, choice_name(lab::kArrivals, first.options.arrival),
             choice_name(lab::kCaches, first.options.cache), first.triad / kGiga) +
         table.text(width);
}

std::string bench_json(std::span<const BenchRow> rows) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : lab::environment()) json["environment"][name] = value;
  json["measurements"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) {
    json["measurements"].push_back({{"strategy", row.strategy},
                                    {"reproducible", row.reproducible},
                                    {"cores", row.task.cores},
                                    {"size", row.task.size},
                                    {"fused", row.task.fused},
                                    {"threads", row.threads},
                                    {"arrival", choice_name(lab::kArrivals, row.options.arrival)},
                                    {"cache", choice_name(lab::kCaches, row.options.cache)},
                                    {"runs", row.seconds.runs},
                                    {"median_seconds", row.seconds.median},
                                    {"min_seconds", row.seconds.min},
                                    {"max_seconds", row.seconds.max},
                                    {"buffer_bytes_per_second", row.algorithm_bandwidth()},
                                    {"bytes_moved", row.bytes_moved},
                                    {"moved_bytes_per_second", row.moved_bandwidth()},
                                    {"triad_bytes_per_second", row.triad}});
  }
  return json_text(json, 2) + "\n";
}

}  // namespace rubato::app
