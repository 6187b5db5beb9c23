#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/text/text.hpp"
#include "runs/lab/measure.hpp"

namespace rubato::app {

/// One measurement, and the task that was measured.
struct BenchRow {
  std::string strategy;
  /// True if every sum has the order of the summation tree, and so the same bits.
  bool reproducible = false;
  lab::ReduceTask task;
  int threads = 1;
  lab::MeasureOptions options{};
  lab::Measurement seconds{};
  /// The bytes that one sum moves; 0 if unknown.
  double bytes_moved = 0;
  /// Bytes per second of the STREAM triad, measured in this process on as many threads.
  double triad = 0;

  /// Bytes of one core's buffer per second.
  [[nodiscard]] double algorithm_bandwidth() const {
    return static_cast<double>(task.size * sizeof(float)) / seconds.median;
  }
  [[nodiscard]] double moved_bandwidth() const { return bytes_moved / seconds.median; }
};

/// The lines above the tables, which describe the machine.
[[nodiscard]] std::string bench_header(LineWidth width = {});
/// A table of the rows of one task on one number of threads, fastest first.
[[nodiscard]] std::string bench_table(std::span<const BenchRow> rows, LineWidth width = {});
[[nodiscard]] std::string bench_json(std::span<const BenchRow> rows);
/// The JSON Schema of bench_json().
[[nodiscard]] nlohmann::ordered_json bench_schema();

}  // namespace rubato::app
