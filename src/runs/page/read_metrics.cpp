// MetricsReader adds each number of a step or an epoch to buckets under its path in the schema of
// records, so that a new column needs no code here. Faults and monitored norms are written before
// the line of their step, and are kept until it comes; the user's own metrics follow theirs. Marks
// come from the change between two steps: fewer cores without a fault, restarts on the modelled
// clock, a step that was not applied. The first line that cannot be read ends the reading with a
// warning, and what was read before it is shown.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "runs/report/metrics_file.hpp"
#include "runs/report/report_schemas.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

namespace {

// A column of the schema with a number, or with several named numbers.
struct NumberColumn {
  // Index in the schema.
  std::size_t index = 0;
  // Path such as "seconds.wall"; for several numbers the prefix of their names, such as
  // "decision.".
  std::string path{};
};

std::vector<NumberColumn> number_columns(const RecordInfo& record) {
  std::vector<NumberColumn> columns;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    const ColumnType type = record.columns[i].type;
    NumberColumn number{.index = i, .path = json_path(record.columns[i])};
    if (type == ColumnType::numbers) number.path.pop_back();
    if (type == ColumnType::numbers || type == ColumnType::whole || type == ColumnType::real) {
      columns.push_back(std::move(number));
    }
  }
  return columns;
}

class MetricsReader {
 public:
  MetricsReader(const std::vector<std::int64_t>& checkpoints, ThinnedRun& run)
      : run_(run), checkpoints_(checkpoints) {}

  void take(const MetricsLine& line) {
    if (line.kind() == step_.name) take_step(line.cells());
    if (line.kind() == epoch_.name) take_epoch(line.cells());
    if (line.kind() == fault_schema().name) take_fault(line.record(fault_schema()));
    if (line.kind() == monitor_schema().name) take_monitor(line.record(monitor_schema()).part);
    if (line.kind() == own_.name) take_own(line.cells());
  }

 private:
  static void add(const std::string& name, double value, Buckets& to) {
    if (std::isfinite(value)) to.add(name, value);
  }
  static void take_numbers(const std::vector<NumberColumn>& columns, const Cells& cells,
                           Buckets& to) {
    for (const NumberColumn& column : columns) {
      const Cell& cell = cells[column.index];
      if (const auto* const whole = std::get_if<std::int64_t>(&cell)) {
        to.add(column.path, static_cast<double>(*whole));
      } else if (const auto* const real = std::get_if<double>(&cell)) {
        add(column.path, *real, to);
      } else if (const auto* const several = std::get_if<std::vector<NamedNumber>>(&cell)) {
        for (const NamedNumber& number : *several) add(column.path + number.name, number.value, to);
      }
    }
  }

  void mark(std::string_view kind, std::string text = {}, std::int64_t count = 1) {
    run_.add_mark({kind, count_, std::move(text), run_.last, count});
  }

  void take_monitor(const TensorStatistics& tensor) {
    if (!std::isfinite(tensor.norm)) return;
    pending_.emplace_back(
        fmt::format("monitor.{} {}", tensor.name, tensor.gradient ? "gradient" : "parameter"),
        tensor.norm);
  }

  // The line of own metrics follows that of its step or epoch.
  void take_own(const Cells& cells) {
    Buckets& to = number_in(own_, cells, "epoch") ? run_.epochs : run_.steps;
    const auto* const numbers = std::get_if<std::vector<NamedNumber>>(&cells.back());
    if (numbers == nullptr) return;
    for (const NamedNumber& number : *numbers) add("metrics." + number.name, number.value, to);
  }

 public:
  void take_step(const Cells& cells) {
    const StepRecord step = record_of(step_schema(), cells);
    // Steps count from 1 on the page.
    count_ = step.plan.index.value() + 1;
    const auto cores = static_cast<double>(step.plan.cores);
    const double restarts_before = run_.clock.restarts;

    run_.last[Axis::steps] = static_cast<double>(count_);
    run_.last[Axis::samples] += static_cast<double>(step.plan.batch_size);
    run_.last[Axis::seconds] += step.seconds.wall;
    if (step.time) {
      run_.has_clock = true;
      for (const auto& [index, time] : clock_columns_) {
        run_.clock.*time = number_in(cells, index).value_or(0);
      }
      run_.last[Axis::hours] = number_in(cells, hours_).value_or(0);
      run_.last[Axis::money] = step.time->money;
    }
    run_.steps.begin_step(run_.last);
    take_numbers(step_columns_, cells, run_.steps);
    for (const auto& [name, value] : std::exchange(pending_, {})) run_.steps.add(name, value);
    if (const auto* const counts = std::get_if<std::vector<std::int64_t>>(&cells[substeps_])) {
      run_.substeps.add(*counts, step.plan.cores);
    }
    run_.times.data += step.seconds.data;
    run_.times.compute += step.seconds.compute;
    run_.times.reduce += step.seconds.reduce;
    run_.times.exchange += step.seconds.exchange.value_or(0);
    run_.times.update += step.seconds.update;
    run_.times.wall += step.seconds.wall;

    // A step may be restarted several times.
    const auto restarts = static_cast<std::int64_t>(run_.clock.restarts - restarts_before);
    const bool restarted = restarts > 0;
    if (cores < cores_ && faults_.empty() && !restarted) {
      mark(kFewerCores, fmt::format("{} instead of {}", cores, cores_));
    }
    if (restarted) {
      mark(kRestart,
           fmt::format("{}on {} cores, before on {}",
                       restarts == 1 ? "" : fmt::format("{} times, in the end ", restarts), cores,
                       cores_),
           restarts);
    }
    for (std::string& fault : std::exchange(faults_, {})) mark(kFault, std::move(fault));
    if (!step.applied && !step.skipped) mark(kDiverged);
    if (std::ranges::binary_search(checkpoints_, count_)) mark(kCheckpoint);
    for (Mark& hosts : std::span(run_.marks).first(host_marks_)) {
      if (hosts.step == count_) hosts.at = run_.last;
    }
    cores_ = cores;
  }

  void take_epoch(const Cells& cells) {
    run_.epochs.begin_step(run_.last);
    take_numbers(epoch_columns_, cells, run_.epochs);
    run_.times.test += number_in(epoch_, cells, "test_seconds").value_or(0);
    run_.last_epoch = cells;
  }

  // A fault's line precedes that of its step.
  void take_fault(const FaultOfStep& line) {
    faults_.push_back(fmt::format("core {} in its substep {}; the step was redone on {} cores",
                                  line.fault.core.value(), line.fault.substep, line.cores_left));
  }

 private:
  ThinnedRun& run_;
  const std::vector<std::int64_t>& checkpoints_;
  const RecordInfo& step_ = record_info(step_schema().name);
  const RecordInfo& epoch_ = record_info(epoch_schema().name);
  const RecordInfo& own_ = record_info(own_schema().name);
  const std::vector<NumberColumn> step_columns_ = number_columns(step_);
  const std::vector<NumberColumn> epoch_columns_ = number_columns(epoch_);
  const std::size_t substeps_ = column_index(step_, "substeps");
  // Modelled time has the digits that are written, not those of the seconds of a record.
  const std::size_t hours_ = column_index(step_, "hours");
  const std::vector<std::pair<std::size_t, double ModelledTimes::*>> clock_columns_{
      {column_index(step_, "idle_hours"), &ModelledTimes::idle_hours},
      {column_index(step_, "lost_hours"), &ModelledTimes::lost_hours},
      {column_index(step_, "restart_hours"), &ModelledTimes::restart_hours},
      {column_index(step_, "join_hours"), &ModelledTimes::join_hours},
      {column_index(step_, "redone_hours"), &ModelledTimes::redone_hours},
      {column_index(step_, "checkpoint_hours"), &ModelledTimes::checkpoint_hours},
      {column_index(step_, "restarts"), &ModelledTimes::restarts}};
  // Number of marks of hosts, which were added before the metrics are read and come first.
  const std::size_t host_marks_ = run_.marks.size();
  // The last step, counted from 1.
  std::int64_t count_ = 0;
  double cores_ = 0;
  // Faults, and norms of tensors, of the step whose line comes next.
  std::vector<std::string> faults_;
  std::vector<std::pair<std::string, double>> pending_;
};

}  // namespace

void read_metrics(const std::filesystem::path& file, const std::vector<std::int64_t>& checkpoints,
                  ThinnedRun& run) {
  require_metrics(file);
  GrowingLines lines(file);
  MetricsReader reader(checkpoints, run);
  try {
    rubato::read_metrics(lines, [&](const MetricsLine& line) { reader.take(line); });
  } catch (const Error& error) {
    run.warnings.push_back(
        fmt::format("{}; this line and all after it are left out.", error.what()));
    return;
  }
  if (lines.has_rest()) {
    run.warnings.push_back(fmt::format("{}: the last line, {}, is half written and left out.",
                                       file.string(), lines.line() + 1));
  }
}

namespace {

// Rows of columns as the cells of a record; those that are no numbers are without a value.
class RowReader {
 public:
  RowReader(const RecordInfo& record, const NumberColumns& columns, std::string_view index)
      : record_(record) {
    for (const ColumnInfo& column : record.columns) {
      const auto found = columns.find(column.name);
      columns_.emplace_back();
      if (found != columns.end()) columns_.back() = found->second;
      if (column.name == index) index_ = columns_.back();
    }
  }

  [[nodiscard]] std::size_t rows() const { return index_.size(); }
  // The step or epoch of a row.
  [[nodiscard]] double index(std::size_t row) const { return index_[row]; }
  [[nodiscard]] Cells cells(std::size_t row) const {
    Cells cells(columns_.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i].size() != rows()) continue;
      cells[i] = cell_of(columns_[i][row], record_.columns[i].type);
    }
    return cells;
  }

 private:
  static Cell cell_of(double value, ColumnType type) {
    constexpr double kWhole = 0x1p62;
    if (std::isnan(value)) return {};
    if (type == ColumnType::real) return value;
    if (type == ColumnType::flag) return value != 0;
    if (type != ColumnType::whole) return {};
    return static_cast<std::int64_t>(std::clamp(value, -kWhole, kWhole));
  }

  const RecordInfo& record_;
  std::vector<std::span<const double>> columns_{};
  std::span<const double> index_{};
};

}  // namespace

void take_records(const RecordColumns& records, ThinnedRun& run) {
  const std::vector<std::int64_t> no_checkpoints;
  MetricsReader reader(no_checkpoints, run);
  const RecordInfo& step = record_info(step_schema().name);
  const RowReader steps(step, records.steps, "step");
  const RowReader epochs(record_info(epoch_schema().name), records.epochs, "epoch");
  const RowReader faults(record_info(fault_schema().name), records.faults, "step");
  std::size_t epoch = 0;
  std::size_t fault = 0;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    const Cells cells = steps.cells(i);
    const double its_epoch = number_in(step, cells, "epoch").value_or(0);
    for (; epoch < epochs.rows() && epochs.index(epoch) < its_epoch; ++epoch) {
      reader.take_epoch(epochs.cells(epoch));
    }
    for (; fault < faults.rows() && faults.index(fault) <= steps.index(i); ++fault) {
      reader.take_fault(record_of(fault_schema(), faults.cells(fault)));
    }
    reader.take_step(cells);
  }
  for (; epoch < epochs.rows(); ++epoch) reader.take_epoch(epochs.cells(epoch));
}

}  // namespace rubato::page
