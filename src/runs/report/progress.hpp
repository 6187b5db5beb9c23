#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/system/stopwatch.hpp"
#include "base/core/terminal/drawn_line.hpp"
#include "epoch_details.hpp"
#include "loop/train/records/record_column.hpp"
#include "runs/report/view/run_viewer.hpp"

namespace rubato {

/// What progress looks like. All of them have lines for epochs and faults.
enum class ProgressStyle {
  /// Nothing is drawn over.
  lines,
  /// A line that is drawn over shows the step under way.
  bar,
  /// Several lines that are drawn over show the run so far (RunView).
  view,
};

/// Where progress is shown.
struct ProgressOut {
  /// Shows text as it is. Returns why it could not (errno), or 0.
  std::function<int(std::string_view text)> write;
  /// Of the terminal that says how long lines may be; -1 where there is none.
  int descriptor = -1;
  ProgressStyle style = ProgressStyle::lines;
  /// Whether epochs have lines of EpochDetails, too.
  bool verbose = false;
  /// Whether steps have lines, ProgressOptions::log_steps apart, where nothing is drawn over.
  bool logs_steps = true;
  /// How often something else has come onto the terminal, below which a view is then drawn anew;
  /// empty where nothing ever does.
  std::function<int()> disturbances{};
};
/// On a file or a terminal.
[[nodiscard]] ProgressOut progress_on(std::FILE* out, ProgressStyle style = ProgressStyle::lines);

/// What a progress line is drawn with.
struct ProgressOptions {
  /// Epochs that will be trained at most, and samples in each at most.
  std::int64_t epochs = 1;
  std::int64_t samples_per_epoch = 1;
  /// Of lines: one every so many steps; 0 is none.
  std::int64_t log_steps = 0;
  /// That train.
  int threads = 1;
  /// TrainOptions::top_k and budget.
  std::int64_t top_k = 0;
  Budget budget{};
};

/// Shows how training goes on: the run or its current step where that can be drawn over, plain
/// lines elsewhere, and a line for each epoch on both. Epochs and steps are those of the run,
/// from 1.
class Progress final : public Observer {
 public:
  Progress(ProgressOut out, const ProgressOptions& options);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Takes what is drawn over from the terminal, as the destructor does.
  void finish() { clear(); }
  /// Why something could not be written (errno); 0 where all was. Training goes on without.
  [[nodiscard]] int error() const { return error_; }

  void on_epoch_begin(Training& training, const EpochStart& epoch) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;

 private:
  // As it is, and as lines that fit.
  void send(std::string_view text);
  // What is sent from hold() on goes out at once: a view that makes room for a line does not blink.
  void hold();
  void release();
  void print(std::string_view line);
  void clear();
  void draw_bar(const StepRecord& step);
  // Of the whole run.
  [[nodiscard]] double samples_done() const;
  [[nodiscard]] double samples_ahead() const;
  [[nodiscard]] Pace pace() const;
  /// Samples per second of training in this epoch so far.
  [[nodiscard]] double rate() const;
  [[nodiscard]] double seconds_left() const;
  // How much of the budget is spent with a step.
  void note_spent(const Training& training, const StepRecord& step);

  ProgressOut out_;
  int error_ = 0;
  ProgressOptions options_;
  Stopwatch since_start_;
  Stopwatch since_epoch_;
  Stopwatch since_drawn_;
  EpochDetails details_;
  DrawnLine bar_;
  // Where the style is a view.
  std::optional<RunViewer> viewer_;
  // Empty where nothing is held.
  std::optional<std::string> held_;
  std::int64_t samples_before_epoch_ = 0;
  std::int64_t epochs_done_ = 0;
  // Of this epoch: those done here, and all that are done.
  std::int64_t epoch_samples_here_ = 0;
  std::int64_t epoch_samples_ = 0;
  std::int64_t epoch_samples_planned_ = 0;
  std::int64_t epoch_steps_ = 0;
  StepIndex first_step_;
  std::int64_t epoch_steps_planned_ = 0;
  // Of a budget, with the first step seen here and with the last one.
  std::optional<double> spent_at_first_;
  double spent_ = 0;
};

/// A column as people read it: "lr" and "0.01", "top-5 accuracy" and "97.25 %".
struct ShownField {
  std::string label;
  std::string value;
  /// The column's.
  const ProgressField* progress;
};
enum class Digits { few, many };
/// Adds the value of a column that has a label, where it has a value. `top_k` is
/// TrainOptions::top_k.
void add_shown(std::vector<ShownField>& fields, const ColumnInfo& column, const Cell& cell,
               std::int64_t top_k, Digits digits);
/// What people read of a record.
template <class Record>
[[nodiscard]] std::vector<ShownField> shown_fields(const RecordSchema<Record>& schema,
                                                   const Record& record, std::int64_t top_k = 0,
                                                   Digits digits = Digits::few) {
  std::vector<ShownField> fields;
  for (const RecordColumn<Record>& column : schema.columns) {
    if (column.info().progress.label.empty()) continue;
    add_shown(fields, column.info(), column.read(record), top_k, digits);
  }
  return fields;
}
/// "843", "29.8k", "1.20M".
[[nodiscard]] std::string short_number(double value);
/// "0:07", "12:30", "1:02:03".
[[nodiscard]] std::string clock_time(double seconds);
/// A number with that many decimals. What is no number has no sign: "nan", never "-nan".
[[nodiscard]] std::string decimal(double value, int decimals);

}  // namespace rubato
