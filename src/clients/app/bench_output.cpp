#include "bench_output.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/of_part.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text_table.hpp"
#include "runs/lab/measure.hpp"

namespace rubato::app {

namespace {

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

std::string gigabytes(double bytes) {
  constexpr double kGiga = 1e9;
  return fmt::format("{:.2f}", bytes / kGiga);
}

OutputFields<BenchRow> bench_fields() {
  using lab::MeasureOptions, lab::Measurement, lab::ReduceTask;
  return {
      {"strategy", "the strategy, as --reduce takes it", &BenchRow::strategy,
       OutputColumn{"strategy", Column::left}},
      {"reproducible", "whether its sum has the same bits for every number of threads and cores",
       &BenchRow::reproducible},
      {"cores", "emulated cores", of_part(&BenchRow::task, &ReduceTask::cores)},
      {"size", "values of a gradient, 4 bytes each", of_part(&BenchRow::task, &ReduceTask::size)},
      {"fused", "whether the update is part of it", of_part(&BenchRow::task, &ReduceTask::fused)},
      {"threads", "threads that work on it", &BenchRow::threads},
      {"arrival", "when the cores arrive", of_part(&BenchRow::options, &MeasureOptions::arrival),
       form_of_choice(lab::kArrivals)},
      {"cache", "what is in the caches at the beginning",
       of_part(&BenchRow::options, &MeasureOptions::cache), form_of_choice(lab::kCaches)},
      {"runs", "runs that were measured", of_part(&BenchRow::seconds, &Measurement::runs)},
      {"median_seconds", "median of the runs", of_part(&BenchRow::seconds, &Measurement::median),
       OutputColumn{"median", Column::right, duration}},
      {"min_seconds", "the fastest run", of_part(&BenchRow::seconds, &Measurement::min)},
      {"max_seconds", "the slowest run", of_part(&BenchRow::seconds, &Measurement::max)},
      {"min - max", Column::right,
       [](const BenchRow& row) {
         return fmt::format("{} - {}", duration(row.seconds.min), duration(row.seconds.max));
       }},
      {"buffer_bytes_per_second", "bytes of one gradient by the median",
       &BenchRow::algorithm_bandwidth, OutputColumn{"buffer GB/s", Column::right, gigabytes}},
      {"bytes_moved", "what a run reads and writes; 0 where nobody knows", &BenchRow::bytes_moved},
      {"moved_bytes_per_second", "the same by the median", &BenchRow::moved_bandwidth},
      {"moved GB/s", Column::right,
       [](const BenchRow& row) {
         return row.bytes_moved == 0 ? "-" : gigabytes(row.moved_bandwidth());
       }},
      {"triad_bytes_per_second", "what STREAM's triad moves on this machine", &BenchRow::triad},
      {"of triad", Column::right,
       [](const BenchRow& row) {
         if (row.bytes_moved == 0) return std::string("-");
         return fmt::format("{:.0f} %", 100 * row.moved_bandwidth() / row.triad);
       }},
      {"reproducible", Column::left,
       [](const BenchRow& row) { return row.reproducible ? "yes" : "no"; }}};
}

// All that --json prints.
struct BenchReport {
  ByName<std::string> environment{};
  std::vector<BenchRow> rows{};
};
JsonForm<BenchReport> report_form() {
  return form_of_object<BenchReport>(
      {{"environment", "what the machine and the program are, by name", &BenchReport::environment},
       {"measurements", "strategies in one configuration each, in the order of measurement",
        &BenchReport::rows, form_of_object(bench_fields())}});
}

}  // namespace

std::string bench_header(LineWidth width) {
  TextTable table({Column::left, Column::left});
  for (const auto& [name, value] : lab::environment()) table.add({name, value});
  return table.text(width);
}

std::string bench_table(std::span<const BenchRow> rows, LineWidth width) {
  if (rows.empty()) return {};
  std::vector<BenchRow> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, {}, [](const BenchRow& row) { return row.seconds.median; });
  const BenchRow& first = rows.front();
  return fmt::format(
             "\n{} cores x {} floats{}, {} threads, {} arrival, {} cache; STREAM triad {:.1f} "
             "GB/s\n\n",
             first.task.cores, first.task.size, first.task.fused ? ", with the update" : "",
             first.threads, choice_name(lab::kArrivals, first.options.arrival),
             choice_name(lab::kCaches, first.options.cache), first.triad / 1e9) +
         table_of<BenchRow>(bench_fields(), sorted).text(width);
}

std::string bench_json(std::span<const BenchRow> rows) {
  const BenchReport report{lab::environment(), {rows.begin(), rows.end()}};
  return json_text(report_form().write(report), 2) + "\n";
}

nlohmann::ordered_json bench_schema() {
  return report_form().schema;
}

}  // namespace rubato::app
