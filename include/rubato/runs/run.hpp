#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

struct Handover;

/// Where a run is kept, and what it continues from. Nothing in it is touched until everything else
/// that the run needs has been checked.
class RunLocation {
 public:
  /// Nowhere: the run writes nothing.
  RunLocation() = default;
  /// A folder that does not exist; the run makes it.
  [[nodiscard]] static RunLocation create(std::filesystem::path folder);
  /// The folder of a run, to go on with it: from `checkpoint`, one of its files, else from the
  /// newest good one, else from the beginning. Throws Error where the run cannot go on, is worked
  /// on by another process, has gone on in another folder, or was trained with other options than
  /// `configuration`, naming them.
  [[nodiscard]] static RunLocation resume(
      std::filesystem::path folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {});
  /// resume(), for a command that is given again whenever its process has ended: a run without a
  /// checkpoint begins anew in its folder, with the files that `configuration` names, and one that
  /// was not even begun, too. A process that is about to end is waited for.
  [[nodiscard]] static RunLocation continue_in(std::filesystem::path folder,
                                               const RunConfiguration& configuration);
  /// Nowhere, but what resume(), or with `again` continue_in(), goes on from: of a host that
  /// computes along with the one that works in the folder. Throws Error as they do, but for other
  /// processes.
  [[nodiscard]] static RunLocation follow(
      const std::filesystem::path& folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {}, bool again = false);

  /// A folder, for a run of other hosts to go on in from its state, with its records. Where there
  /// is one it is that of the same run, and nothing of it is newer; else it is made. Throws Error
  /// where it is of another run or is worked on by another process, for longer than `patience`
  /// where that has ended, OutputError where it cannot be written.
  [[nodiscard]] static RunLocation take_over(std::filesystem::path folder,
                                             const RunConfiguration& configuration,
                                             const Handover& handover,
                                             std::chrono::milliseconds patience = {});

  /// Empty where it is nowhere.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  /// Whether there is a run in it.
  [[nodiscard]] bool is_resumed() const { return folder_.has_value(); }
  /// What the run goes on from; empty where it begins. Its file has no name where other hosts have
  /// given it.
  [[nodiscard]] const std::optional<CheckpointFolder::Found>& from() const { return from_; }
  /// Whether that checkpoint was named.
  [[nodiscard]] bool is_named() const { return named_; }
  /// Why newer checkpoints were passed over.
  [[nodiscard]] const std::vector<std::string>& rejected() const { return rejected_; }

 private:
  friend class Run;

  // Finds what the run in `folder` continues from; with `again` it works as continue_in() does.
  void find(const std::filesystem::path& folder, const RunConfiguration& configuration,
            const std::optional<std::filesystem::path>& checkpoint, bool again = false);

  std::filesystem::path path_;
  std::optional<RunFolder> folder_;
  std::optional<CheckpointFolder::Found> from_;
  bool named_ = false;
  std::vector<std::string> rejected_;
};

class KeepNewer;
class KernelRecord;
class RunRecord;
class TensorBoard;
class Timeline;

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
  /// The user of a run that diverged may try this.
  std::string advice{Diverged::kSmallerSteps};
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
  /// For another thread while execute() runs: one of the state before the step or the test that is
  /// being computed (Trainer::state_in_step()). Returns how many steps it has; empty where nothing
  /// is being computed any more. Does nothing where there is such a checkpoint, and before the
  /// first step. Throws OutputError.
  std::optional<std::int64_t> write_checkpoint_in_step();
  /// Flushes the records of all steps so far, on which a state relies, to the disk. Throws
  /// OutputError.
  void sync_records() const;
  /// The weights as they are now; returns their file. Throws OutputError.
  std::filesystem::path write_weights() const;

 private:
  // What the state is of, in the order in which it is loaded.
  void add_keepers();
  void go_on();
  RunOutcome train();
  void write_timeline_of_failure() noexcept;
  void write_best() const;
  [[nodiscard]] RunSummary summary_of(const std::string& stopped) const;
  void write_results(RunSummary& summary, bool with_checkpoint);
  [[nodiscard]] const RunFolder& folder() const;

  RunConfiguration configuration_;
  std::shared_ptr<const Workload> workload_;
  RunLocation location_;
  CheckpointFolder checkpoints_;
  Steps steps_;
  std::shared_ptr<Timeline> timeline_;
  Trainer trainer_;

  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<KernelRecord> kernels_;
  std::shared_ptr<KeepNewer> newer_;
  std::shared_ptr<MetricsWriter> metrics_;
  std::shared_ptr<TensorBoard> tensorboard_;
  std::shared_ptr<BestWeights> best_;
  std::shared_ptr<Checkpointer> checkpointer_;
};

}  // namespace rubato
