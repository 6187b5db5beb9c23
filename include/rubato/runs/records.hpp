#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// The engine that computes a run's model, as recorded in its summary.
struct EngineFacts {
  /// Pairs of a library's name and a fact about it.
  using Facts = std::vector<std::pair<std::string, std::string>>;

  /// "eigen" or "libtorch".
  std::string engine{};
  /// Kernels of each library that has several: {"OpenBLAS", "Haswell"}. The text is empty if the
  /// library does not tell, or is missing.
  Facts kernels{};
  /// Versions of the libraries: {"torch", "1.13.1"}.
  Facts versions{};

  /// The version of a library; empty if the engine does not use it.
  [[nodiscard]] std::string version_of(std::string_view library) const;
};

/// The kernels as text for people: "OpenBLAS Haswell, ATen AVX2, oneDNN avx512_core".
[[nodiscard]] std::string kernels_text(const EngineFacts::Facts& kernels);

/// The ways in which a run, or one session of it, ends.
enum class RunEnd {
  /// All epochs were trained, or its budget is used up.
  completed,
  /// An observer, such as early stopping, or the end of its trace ended it before.
  stopped,
  /// It was completed or stopped, but missed its target accuracy.
  target_missed,
  /// No devices were left for the rest of it (TrainResult::out_of_devices).
  out_of_devices,
  /// The loss or the gradient became infinite or NaN.
  diverged,
  /// It has not ended: a resumed run has the same bits.
  paused,
};
inline constexpr std::array<Choice<RunEnd>, 6> kRunEnds{{{RunEnd::completed, "completed"},
                                                         {RunEnd::stopped, "stopped"},
                                                         {RunEnd::target_missed, "target_missed"},
                                                         {RunEnd::out_of_devices, "out_of_devices"},
                                                         {RunEnd::diverged, "diverged"},
                                                         {RunEnd::paused, "paused"}}};

/// The contents of a run's summary.json.
struct RunSummary {
  TrainResult result;
  TrainOptions options;
  EngineFacts engine;
  /// "native" or "portable".
  std::string kernels_wanted = "native";
  /// Set if the program was restarted to select its kernels.
  std::optional<KernelStart> kernel_start;
  std::string model;
  std::string data;
  std::string trace;
  std::string rule;
  std::string weights_sha256;
  /// SHA-256 of metrics.jsonl when the run ended; empty if it has no such file.
  std::string metrics_sha256{};
  /// Time from the first step to the last evaluation.
  double wall_seconds = 0;
  std::int64_t gradient_buffers = 0;
  /// Number of hosts that the run had in the end; empty if it never had several.
  std::optional<int> hosts{};
  /// Whether steps can be skipped, as with an adaptive loss scale.
  bool may_skip = false;
  /// Empty in the summaries of older programs, which did not say it.
  std::optional<RunEnd> end{};
  /// The reason why it ended early, such as an error's message; empty for a run that was completed.
  std::string stopped;
};

/// The summary as the JSON text of summary.json (docs/records.md). Accuracies are shares from 0 to
/// 1; values that the run does not have (an accuracy without a test set) are null.
[[nodiscard]] std::string to_json(const RunSummary& summary);
/// Reads a summary.json; what it does not say of the options, the kernels and the versions is as in
/// a new summary. Throws Error, naming the file, if it is not one.
[[nodiscard]] RunSummary read_summary(const std::filesystem::path& file);

/// Values that the user's program measured after a step or an epoch, and the learning rate that it
/// set then.
struct OwnMetrics {
  /// "step" or "epoch", followed by its index.
  std::string_view of;
  std::int64_t index = 0;
  /// The rate passed to Training::set_learning_rate(); empty if it was not called.
  std::optional<double> learning_rate{};
  std::span<const MetricValue> values{};
};

/// Writes metrics.jsonl: one line with a JSON object for each step and each epoch, in their order.
/// A line is handed to the operating system before the next step begins.
///
///     {"kind":"step","step":0,"epoch":0,"batch":256,...,"seconds":{"data":0.001,...}}
///
/// All kinds of lines and their fields are documented in docs/records.md; their JSON Schema is
/// printed by `rubato list records --json`. Values that were not measured are left out, and numbers
/// that are not finite are null. Epochs and steps count from 0, steps over the whole run.
class MetricsWriter final : public Observer {
 public:
  /// Starts a new file, or with `keep` appends to the existing one, whose end is cut off when a
  /// state is loaded. Throws OutputError when the file cannot be opened.
  explicit MetricsWriter(std::filesystem::path path, bool keep = false);

  [[nodiscard]] std::string_view name() const override { return "metrics"; }
  /// The observer's functions throw OutputError when a line cannot be written.
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  /// Saves the length of the file. Loading throws Error when the file has become shorter than it
  /// was then, and changes nothing yet: whatever was written after the state was saved is cut off
  /// by the first of the members below that writes.
  void visit_state(StateVisitor& state, const Training& training) override;
  /// Flushes all lines to the disk. Throws OutputError when that fails, or when the file has been
  /// removed or replaced.
  void flush();
  /// SHA-256 of the whole file after a flush(); it shows later whether the file has been changed.
  /// Throws OutputError.
  [[nodiscard]] std::string sha256();
  /// Writes a line for each tensor of a Monitor. Throws OutputError.
  void write(const StepPlan& step, std::span<const TensorStatistics> tensors);
  /// Writes a line with the values of the user's program. Throws OutputError.
  void write(const OwnMetrics& metrics);

 private:
  // Throws OutputError when the file has been removed.
  void open(std::ios::openmode mode);
  // Cuts off what the file has beyond its first bytes_ bytes.
  void cut_off();
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream out_;
  std::int64_t bytes_ = 0;
  // Whether a loaded state knows only the beginning of the file.
  bool has_more_ = false;
};

}  // namespace rubato
