#pragma once

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
#include <rubato/loop/observer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// What computes the model of a run, for its record.
struct EngineFacts {
  /// Names of libraries, each with what there is to be known of it.
  using Facts = std::vector<std::pair<std::string, std::string>>;

  /// "eigen" or "libtorch".
  std::string engine{};
  /// The kernels of each library that has several: {"OpenBLAS", "Haswell"}. Empty where the library
  /// does not say, or is not there.
  Facts kernels{};
  /// Their versions: {"torch", "1.13.1"}.
  Facts versions{};

  /// That of a library; empty where it is none of the engine's.
  [[nodiscard]] std::string version_of(std::string_view library) const;
};

/// The kernels for people: "OpenBLAS Haswell, ATen AVX2, oneDNN avx512_core".
[[nodiscard]] std::string kernels_text(const EngineFacts::Facts& kernels);

/// What a run came to.
struct RunSummary {
  TrainResult result;
  TrainOptions options;
  EngineFacts engine;
  /// "native" or "portable".
  std::string kernels_wanted = "native";
  /// Where the program was started again for its kernels.
  std::optional<KernelStart> kernel_start;
  std::string model;
  std::string data;
  std::string trace;
  std::string weights_sha256;
  /// Of metrics.jsonl when the run ended; empty where it has none.
  std::string metrics_sha256{};
  /// From the first step to the last evaluation.
  double wall_seconds = 0;
  std::int64_t gradient_buffers = 0;
  /// How many hosts the run had in the end; empty of one that never had several.
  std::optional<int> hosts{};
  /// Whether steps may be skipped, as they are where the loss scale adapts itself.
  bool may_skip = false;
  /// Why it ended early: the message of the error; empty for a run that went to its end.
  std::string stopped;
};

/// The summary as the JSON text of summary.json (docs/records.md). Accuracies are shares, 0 to 1;
/// what the run has not (an accuracy without a test set) is null.
[[nodiscard]] std::string to_json(const RunSummary& summary);

/// What a program has measured itself behind a step or an epoch, and the rate that it has set
/// there.
struct OwnMetrics {
  /// "step" or "epoch", and which.
  std::string_view of;
  std::int64_t index = 0;
  /// Training::set_learning_rate().
  std::optional<double> learning_rate{};
  std::span<const MetricValue> values{};
};

/// Writes metrics.jsonl: a JSON object on a line for each step and each epoch, as they come. A line
/// is handed to the operating system before the next step begins.
///
///     {"kind":"step","step":0,"epoch":0,"batch":256,...,"seconds":{"data":0.001,...}}
///
/// Each kind of line, with its fields, is in docs/records.md; `rubato list records --json` prints
/// their JSON Schema. What was not measured is left out. A number that is not finite is null.
/// Epochs and steps count from 0, steps over the whole run.
class MetricsWriter final : public Observer {
 public:
  /// Begins the file anew, or keeps what is in it for a state that is loaded. Throws OutputError
  /// when it cannot be opened.
  explicit MetricsWriter(std::filesystem::path path, bool keep = false);

  [[nodiscard]] std::string_view name() const override { return "metrics"; }
  /// All throw OutputError when the line cannot be written.
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  /// How long the file is. Where it loads, it cuts off what was written after the state was taken,
  /// and throws Error when the file has become shorter than it was then.
  void visit_state(StateVisitor& state, const Training& training) override;
  /// Brings all lines to the disk. Throws OutputError when that fails, or the file has gone.
  void flush();
  /// Of all lines, once they are on the disk (flush()): by what it is known later that nobody has
  /// changed them. Throws OutputError.
  [[nodiscard]] std::string sha256();
  /// For a Monitor.
  void write(const StepPlan& step, std::span<const TensorStatistics> tensors);
  /// Throws OutputError.
  void write(const OwnMetrics& metrics);

 private:
  // Throws OutputError when the file has gone.
  [[nodiscard]] std::uintmax_t size_on_disk() const;
  void open(std::ios::openmode mode);
  // What lies behind bytes_.
  void cut_off();
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream out_;
  std::int64_t bytes_ = 0;
};

}  // namespace rubato
