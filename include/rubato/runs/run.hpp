#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <rubato/base/state.hpp>
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

/// The place where a run is kept, and the state that it continues from. Nothing in it is touched
/// until everything else that the run needs has been checked.
class RunLocation {
 public:
  /// No place: the run writes nothing.
  RunLocation() = default;
  /// A folder that does not exist yet; the run creates it.
  [[nodiscard]] static RunLocation create(std::filesystem::path folder);
  /// The folder of a run that is to be continued: from `checkpoint`, one of its files, else from
  /// the newest good one, else from the beginning. Throws Error if the run cannot continue, is in
  /// use by another process, has been continued in another folder, or was trained with options
  /// other than those of `configuration`, naming them.
  [[nodiscard]] static RunLocation resume(
      std::filesystem::path folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {});
  /// resume() for a command that is repeated whenever its process has ended: a run without a
  /// checkpoint begins anew in its folder, with the files that `configuration` names, and so does
  /// one that had not even begun, or whose folder does not exist yet. Waits up to ten seconds for
  /// another process that works in the folder to end; `on_wait` is called if it has not after one.
  [[nodiscard]] static RunLocation continue_in(std::filesystem::path folder,
                                               const RunConfiguration& configuration,
                                               const std::function<void()>& on_wait = {});
  /// No folder, but the state from which resume(), or with `again` continue_in(), continues: for a
  /// host that computes together with the one that has the folder. Throws Error as they do, except
  /// because of other processes.
  [[nodiscard]] static RunLocation follow(
      const std::filesystem::path& folder, const RunConfiguration& configuration,
      const std::optional<std::filesystem::path>& checkpoint = {}, bool again = false);

  /// No folder, but the state of a run that had none either, as its Trainer::state() left it.
  /// Throws Error if that was trained with options other than those of `configuration`, naming
  /// them.
  [[nodiscard]] static RunLocation continue_from(State state,
                                                 const RunConfiguration& configuration);
  /// A folder in which a run of other hosts continues from its state, with its records. It is
  /// created, or is a folder of the same run that holds nothing newer. Throws Error if it belongs
  /// to another run, or if another process uses it and has not ended within `patience`; OutputError
  /// if it cannot be written.
  [[nodiscard]] static RunLocation take_over(std::filesystem::path folder,
                                             const RunConfiguration& configuration,
                                             const Handover& handover,
                                             std::chrono::milliseconds patience = {});

  /// A run that begins with the state of another, after any number of its steps, and with its
  /// records up to there (Trainer::fork()). `folder` does not exist yet, or is empty for a run that
  /// writes nothing; `note` is a line of its configuration file that says where it comes from.
  [[nodiscard]] static RunLocation fork(std::filesystem::path folder, Handover of,
                                        std::string note = {});
  /// The same in a folder that has these records already: what follows in it are steps with other
  /// options.
  [[nodiscard]] static RunLocation fork_in(std::filesystem::path folder, Handover of,
                                           std::string note = {});

  /// Empty if there is no folder.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const {
    return path_ / RunFolder::kCheckpoints;
  }
  /// Whether the folder holds a run already.
  [[nodiscard]] bool is_resumed() const { return folder_.has_value() && !folder_->is_new(); }
  /// The state that the run continues from; empty if it begins. Its file name is empty if other
  /// hosts provided the state.
  [[nodiscard]] const std::optional<CheckpointFolder::Found>& from() const { return from_; }
  /// Whether the caller named that checkpoint.
  [[nodiscard]] bool is_named() const { return named_; }
  /// Says where a fork comes from; empty if it is none.
  [[nodiscard]] const std::string& note() const { return note_; }
  /// The reasons why newer checkpoints were skipped.
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
  // True if `from_` is a state of another run, with these files of its folder.
  bool forks_ = false;
  std::map<std::string, std::string> records_;
  std::string note_;
};

class KernelRecord;
class RunRecord;
class TensorBoard;
class Timeline;

/// The result of executing a run.
struct RunOutcome {
  /// Never target_missed, which a run does not know; execute() continues a paused one.
  RunEnd end = RunEnd::completed;
  /// If the run diverged: what diverged, and in which step.
  std::string reason{};
  /// Advice to the user of a run that diverged.
  std::string advice{Diverged::kSmallerSteps};
  /// Set unless the run is paused.
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
  using Steps = std::variant<Trace, Zones>;

  /// Checks everything before it creates a folder or touches that of a run to be continued. With
  /// `hosts` it trains together with other processes that have the same run, of which one may have
  /// a folder; differences between them are found before the first step (require_equal()), or, if
  /// hosts come and go, when one of them takes over a state. `own` holds steps of the program
  /// itself, which replace those of the configuration's trace. Throws Error; OutputError if the
  /// folder cannot be written.
  Run(RunConfiguration configuration, std::shared_ptr<const Workload> workload,
      RunLocation location = {}, std::shared_ptr<Hosts> hosts = {}, std::optional<Steps> own = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Trains to the end, or until an observer pauses. Throws what Trainer::fit() throws, except
  /// Diverged, and OutputError. After an exception the checkpoints written so far are intact, and
  /// write_checkpoint() may be able to write another (Trainer::has_state()).
  RunOutcome execute();
  /// Writes a line of the caller's own to metrics.jsonl, from an observer; does nothing without a
  /// folder. Throws OutputError.
  void write_metrics(const OwnMetrics& metrics);
  /// For Observer::between_steps(): ends training as Training::stop() does, with a summary and an
  /// evaluation, but a resume continues as if it had not been stopped: the newest checkpoint is
  /// from before the stop. Does nothing if training has been stopped already. Throws OutputError.
  void stop_for_now(Training& training, std::string reason);

  [[nodiscard]] const RunConfiguration& configuration() const { return configuration_; }
  [[nodiscard]] const Workload& workload() const { return *workload_; }
  /// The source of its steps: availabilities in modelled time, if the configuration names some,
  /// else a trace.
  [[nodiscard]] const Steps& steps() const { return steps_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] const RunLocation& location() const { return location_; }
  /// A warning about a resumed run that can continue all the same; empty if there is none.
  [[nodiscard]] std::string warning() const;
  /// The folder to which a resumed run moved everything newer than its checkpoint; empty if there
  /// was nothing.
  [[nodiscard]] const std::optional<std::filesystem::path>& kept_in() const { return kept_in_; }
  /// The best weights; null unless the configuration keeps them.
  [[nodiscard]] const BestWeights* best() const { return best_.get(); }

  // The following need a run with a folder.

  [[nodiscard]] const CheckpointFolder& checkpoints() const { return checkpoints_; }
  /// Writes a checkpoint now and returns its file. Throws OutputError.
  std::filesystem::path write_checkpoint();
  /// For another thread while execute() runs: writes the state before the step or the test that is
  /// being computed (Trainer::state_in_step()). Returns how many steps it has; empty if nothing is
  /// being computed any more. Does nothing if there is such a checkpoint already, and before the
  /// first step. Throws OutputError.
  std::optional<std::int64_t> write_checkpoint_in_step();
  /// Brings to the disk the records of all steps so far, on which a state relies. Throws
  /// OutputError.
  void sync_records() const;
  /// Writes the current weights, and their averages if there are any, and returns the file of the
  /// weights. Throws OutputError.
  std::filesystem::path write_weights() const;

 private:
  // Adds the observers whose state is part of a checkpoint, in the order in which it is loaded.
  void add_keepers();
  void load_state();
  RunOutcome train();
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
  std::optional<std::filesystem::path> kept_in_;
  std::shared_ptr<MetricsWriter> metrics_;
  std::shared_ptr<TensorBoard> tensorboard_;
  std::shared_ptr<BestWeights> best_;
  std::shared_ptr<Checkpointer> checkpointer_;
};

}  // namespace rubato
