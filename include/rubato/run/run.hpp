#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <rubato/config/run_configuration.hpp>
#include <rubato/report/checkpoints.hpp>
#include <rubato/report/metrics.hpp>
#include <rubato/report/run_folder.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/run/run_location.hpp>
#include <rubato/run/workload.hpp>
#include <rubato/trace/availability.hpp>
#include <rubato/trace/trace.hpp>
#include <rubato/train/best_weights.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

class KeepNewer;
class KernelRecord;
class RunRecord;
class TensorBoard;

/// The result of executing a run.
struct RunOutcome {
  enum class End {
    completed,
    /// An observer paused it: execute() goes on.
    paused,
    /// The loss or the gradient became infinite or NaN.
    diverged,
    /// There were no devices for the rest of it (TrainResult::out_of_devices).
    out_of_devices,
  };
  End end = End::completed;
  /// Of a run that diverged: what, and where.
  std::string reason{};
  /// Where it is not paused.
  std::optional<RunSummary> summary{};
};

/// A run: everything that a configuration describes, made in the right order, as a value that can
/// be executed.
///
///     const rubato::RunConfiguration configuration = rubato::read_configuration("run.toml");
///     rubato::Run run(configuration, rubato::dense_workload(configuration),
///                     rubato::RunLocation::create("runs/first"));
///     const rubato::RunOutcome outcome = run.execute();
///
/// Its folder (RunFolder describes it) holds the metrics as they come, and after execute() the
/// summary and the weights. It prints nothing and handles no signals; add observers to trainer()
/// before execute() for that.
class Run {
 public:
  using Steps = std::variant<Trace, Availability>;

  /// Everything that can be wrong is found before there is a new folder, or anything in that of a
  /// run to go on with is touched. With `hosts` it trains together with other processes that have
  /// the same run, of which one may have a folder; what differs is found before the first step
  /// (require_equal()), or of hosts that come and go where one of them takes over a state. `own`
  /// are steps that the program has itself, in place of what the configuration's trace names.
  /// Throws Error; OutputError where the folder cannot be written.
  Run(RunConfiguration configuration, std::shared_ptr<const Workload> workload,
      RunLocation location = {}, std::shared_ptr<Hosts> hosts = {}, std::optional<Steps> own = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Trains to the end, or until an observer pauses. Throws what Trainer::fit() does, but for
  /// Diverged, and OutputError. After an exception the checkpoints before it are there, and
  /// write_checkpoint() may have another to write (Trainer::has_state()).
  RunOutcome execute();
  /// A line of the caller's in metrics.jsonl, from an observer; nothing where there is no folder.
  /// Throws OutputError.
  void write_metrics(const OwnMetrics& metrics);
  /// For Observer::between_steps(): training ends there as after Training::stop(), with a summary
  /// and an evaluation, but a resume goes on as if it had not: the newest checkpoint is that of
  /// before. Does nothing where training has been stopped already. Throws OutputError.
  void stop_for_now(Training& training, std::string reason);

  [[nodiscard]] const RunConfiguration& configuration() const { return configuration_; }
  [[nodiscard]] const Workload& workload() const { return *workload_; }
  /// What its steps are of: in modelled time availability, where that is what the configuration
  /// names, else a trace.
  [[nodiscard]] const Steps& steps() const { return steps_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] const RunLocation& location() const { return location_; }
  /// What the caller should know of a resumed run that does not keep it from going on; empty where
  /// there is nothing.
  [[nodiscard]] std::string warning() const;
  /// Where a resumed run moved everything newer than its checkpoint; empty if there was nothing.
  [[nodiscard]] std::optional<std::filesystem::path> kept_in() const;
  /// Null unless the configuration keeps them.
  [[nodiscard]] const BestWeights* best() const { return best_.get(); }

  // Of a run with a folder.

  [[nodiscard]] const CheckpointFolder& checkpoints() const { return checkpoints_; }
  /// Now; returns its file. Throws OutputError.
  std::filesystem::path write_checkpoint();
  /// Flushes the records of all steps so far, on which a state relies, to the disk. Throws
  /// OutputError.
  void sync_records() const;
  /// The weights as they are now; returns their file. Throws OutputError.
  std::filesystem::path write_weights() const;

 private:
  // What the state is of, in the order in which it is loaded.
  void add_keepers();
  void go_on();
  void write_best() const;
  [[nodiscard]] RunSummary summary_of(const std::string& stopped) const;
  void write_results(RunSummary& summary, bool with_checkpoint);
  [[nodiscard]] const RunFolder& folder() const;

  RunConfiguration configuration_;
  std::shared_ptr<const Workload> workload_;
  RunLocation location_;
  CheckpointFolder checkpoints_;
  Steps steps_;
  Trainer trainer_;

  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<KernelRecord> kernels_;
  std::shared_ptr<KeepNewer> newer_;
  std::shared_ptr<MetricsWriter> metrics_;
  std::shared_ptr<TensorBoard> tensorboard_;
  std::shared_ptr<BestWeights> best_;
  std::shared_ptr<Checkpointer> checkpointer_;
  bool stopped_for_now_ = false;
};

}  // namespace rubato
