#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/core/text/wrapped.hpp"
#include "runs/lab/measure.hpp"

namespace rubato::app {

/// One measurement, and what it was of.
struct BenchRow {
  std::string strategy;
  /// Whether the sum has the one order of the summation tree.
  bool reproducible = false;
  lab::ReduceTask task;
  int threads = 1;
  lab::MeasureOptions options{};
  lab::Measurement seconds{};
  /// 0 where it is not known.
  double bytes_moved = 0;
  /// Bytes per second of the STREAM triad on as many threads, in this run.
  double triad = 0;

  /// Bytes of a buffer per second.
  [[nodiscard]] double algorithm_bandwidth() const {
    return static_cast<double>(task.size * sizeof(float)) / seconds.median;
  }
  [[nodiscard]] double moved_bandwidth() const { return bytes_moved / seconds.median; }
};

/// The lines above a table: the machine.
[[nodiscard]] std::string bench_header(LineWidth width = {});
/// A table of the rows of one task and one number of threads, fastest first.
[[nodiscard]] std::string bench_table(std::span<const BenchRow> rows, LineWidth width = {});
[[nodiscard]] std::string bench_json(std::span<const BenchRow> rows);
[[nodiscard]] std::string bench_csv(std::span<const BenchRow> rows);

}  // namespace rubato::app
