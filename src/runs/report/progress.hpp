#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "loop/train/record_schemas.hpp"
#include "run_view.hpp"

namespace rubato {

/// The details of an epoch for --verbose: the ranges of its steps' values, and how the time of its
/// threads was spent. The time that remains is waiting for the last core.
class EpochDetails {
 public:
  void note(const StepRecord& step);
  /// Two lines, with line ends, about the steps since the last call; empty if there were none.
  [[nodiscard]] std::string take(const EpochRecord& epoch, int threads);

 private:
  struct Range {
    double least = 0;
    double most = 0;

    void take(double value, bool first);
    // Examples: "batch 64 to 512", "batch 64".
    [[nodiscard]] std::string text(const char* name) const;
  };

  bool any_ = false;
  Range batch_;
  Range cores_;
  Range rate_;
  Range gain_;
  StepTiming seconds_;
};

/// The ways to show progress. All of them print lines for epochs and faults.
enum class ProgressStyle {
  /// Nothing is redrawn.
  lines,
  /// A line that is redrawn shows the current step.
  bar,
  /// Several lines that are redrawn show the run so far (RunView).
  view,
};

/// The output that progress is shown on.
struct ProgressOut {
  /// Writes the text unchanged. Returns 0, or errno on failure.
  std::function<int(std::string_view text)> write;
  /// Descriptor of the terminal that determines the length of lines; -1 for none.
  int descriptor = -1;
  ProgressStyle style = ProgressStyle::lines;
  /// Whether EpochDetails are printed for each epoch.
  bool verbose = false;
  /// Whether every ProgressOptions::log_steps-th step has a line in the style `lines`.
  bool logs_steps = true;
  /// Counts how often something else has been written to the terminal; the view is then drawn again
  /// below it. Empty if that never happens.
  std::function<int()> disturbances{};
  /// Held while something is drawn. Another thread that writes to the terminal holds it until it
  /// has counted that, so that nothing is drawn over its text. Null if there is no such thread.
  std::mutex* drawing = nullptr;
};
/// Progress on a file or a terminal.
[[nodiscard]] ProgressOut progress_on(std::FILE* out, ProgressStyle style = ProgressStyle::lines);

/// The facts about a run that progress is computed from.
struct ProgressOptions {
  /// Maximum number of epochs, and of samples in an epoch.
  std::int64_t epochs = 1;
  std::int64_t samples_per_epoch = 1;
  /// Number of steps from one line to the next in the style `lines`; 0 for no lines.
  std::int64_t log_steps = 0;
  /// Number of training threads.
  int threads = 1;
  /// The same as in TrainOptions.
  std::int64_t top_k = 0;
  Budget budget{};
};

/// Shows the progress of training: the run or its current step if the output can be redrawn, plain
/// lines otherwise, and a line for each epoch in both cases. Epochs and steps are those of the run,
/// counted from 1.
class Progress final : public Observer {
 public:
  Progress(ProgressOut out, const ProgressOptions& options);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Removes the redrawn lines from the terminal, as the destructor does.
  void finish();
  /// The first error of writing (errno), or 0. Training continues without the output.
  [[nodiscard]] int error() const { return error_; }

  void on_epoch_begin(Training& training, const EpochStart& epoch) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;

 private:
  // Empty if no other thread writes to the output.
  [[nodiscard]] std::unique_lock<std::mutex> alone() const;
  // send() writes text unchanged, print() writes it as lines that fit the terminal.
  void send(std::string_view text);
  // Text that is sent between hold() and release() is written at once, so that a view does not
  // flicker when a line is printed above it.
  void hold();
  void release();
  void print(std::string_view line);
  void clear();
  void draw_bar(const StepRecord& step);
  void draw_view(double samples_per_second);
  // Samples of the whole run that are done, and that are still to come.
  [[nodiscard]] double samples_done() const;
  [[nodiscard]] double samples_ahead() const;
  /// Samples per second of training in this epoch so far.
  [[nodiscard]] double rate() const;
  [[nodiscard]] Remaining remaining_now() const;
  // Updates the share of the budget that is spent after a step.
  void note_spent(const Training& training, const StepRecord& step);

  ProgressOut out_;
  int error_ = 0;
  ProgressOptions options_;
  Stopwatch since_start_;
  Stopwatch since_epoch_;
  Stopwatch since_drawn_;
  EpochDetails details_;
  DrawnLine bar_;
  // Set only in the style `view`.
  std::optional<RunViewer> viewer_;
  // Text since hold(); empty if nothing is held.
  std::optional<std::string> held_;
  std::int64_t samples_before_epoch_ = 0;
  std::int64_t epochs_done_ = 0;
  // Samples of this epoch: those that this process has trained, and all that are done.
  std::int64_t epoch_samples_here_ = 0;
  std::int64_t epoch_samples_ = 0;
  std::int64_t epoch_samples_planned_ = 0;
  std::int64_t epoch_steps_ = 0;
  StepIndex first_step_;
  std::int64_t epoch_steps_planned_ = 0;
  // Share of the budget that is spent after this process's first step, and after its last one.
  std::optional<double> spent_at_first_;
  double spent_ = 0;
};

/// A column as shown to people: "lr" and "0.01", "top-5 accuracy" and "97.25 %".
struct ShownField {
  std::string label;
  std::string value;
  /// Layout of the column; points into its schema.
  const ProgressField* progress;
};
enum class Digits { few, many };
/// Appends the column, which has a label, unless its cell is empty. `top_k` is TrainOptions::top_k.
void add_shown(std::vector<ShownField>& fields, const ColumnInfo& column, const Cell& cell,
               std::int64_t top_k, Digits digits);
/// The fields of a record that are shown to people.
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
/// A number in short form: "843", "29.8k", "1.20M".
[[nodiscard]] std::string short_number(double value);
/// A duration: "0:07", "12:30", "1:02:03".
[[nodiscard]] std::string clock_time(double seconds);
/// A number with this many decimals. NaN has no sign: "nan", never "-nan".
[[nodiscard]] std::string decimal(double value, int decimals);

}  // namespace rubato
