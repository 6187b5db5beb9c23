#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/intervals.hpp>
#include <rubato/loop/observer.hpp>

namespace rubato {

/// The folder with all files of a run. One process at a time works in it.
///
///     config.toml    the configuration that reproduces the run
///     trace.csv      the steps of the trace, unless it is constant or built in; in modelled
///                    time availability.csv, the devices over time
///     given-*.pt     files that the configuration names, such as a model (given-model.pt)
///     metrics.jsonl  a line for each step and each epoch
///     events.out.tfevents.*  the same for TensorBoard, if it was asked for
///     timeline.json  the activities of each thread in the steps of --timeline; processes that
///                    resumed the run write timeline-2.json and so on
///     hosts.log      how the run's groups of hosts formed, if hosts join and leave
///     moved.txt      the folder in which other hosts have continued the run, if they have
///     checkpoints/   states to resume from (CheckpointFolder)
///     summary.json   the results
///     best.pt        the model of the best epoch, if it was to be kept
///     weights.pt     the trained weights, for Python's torch.load
///     NAME.pt        the weights beside them, if there are any (Trainer::with_weights())
///     model.pt       the trained model, for Python's torch.jit.load, if it came as TorchScript
class RunFolder {
 public:
  static constexpr std::string_view kConfiguration = "config.toml";
  static constexpr std::string_view kTrace = "trace.csv";
  static constexpr std::string_view kMetrics = "metrics.jsonl";
  static constexpr std::string_view kHosts = "hosts.log";
  static constexpr std::string_view kMoved = "moved.txt";
  static constexpr std::string_view kCheckpoints = "checkpoints";
  static constexpr std::string_view kSummary = "summary.json";
  static constexpr std::string_view kModel = "model.pt";
  static constexpr std::array<std::string_view, 2> kBest{"best.pt", "best.safetensors"};
  /// The files that a run writes when it ends, the summary first.
  [[nodiscard]] static std::vector<std::string> results();

  /// Creates the folder and its parents. Throws Error when it exists or cannot be created.
  explicit RunFolder(std::filesystem::path path);
  /// Opens the folder of an existing run. Throws Error when there is no such folder, and when
  /// another process still works in it after `patience`: a process that has ended may hold the lock
  /// for a moment longer, until its threads have ended.
  [[nodiscard]] static RunFolder existing(std::filesystem::path path,
                                          std::chrono::milliseconds patience = {});
  /// Opens the folder like existing(), or creates it: of several processes that do so at once, one
  /// has the folder and the others wait for it. `on_wait` is called if that takes more than a
  /// second. A folder that is still empty in the end is removed by the destructor.
  [[nodiscard]] static RunFolder existing_or_new(std::filesystem::path path,
                                                 std::chrono::milliseconds patience,
                                                 const std::function<void()>& on_wait = {});
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  RunFolder& operator=(RunFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// True if existing_or_new() has created it, or found it empty.
  [[nodiscard]] bool is_new() const { return is_new_; }
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }

  /// Writes a file like write_file(); creates the folder again if it has been removed.
  void write(std::string_view name, std::string_view content) const;
  void write(std::string_view name, const ByteSource& content) const;

 private:
  struct Existing {};
  RunFolder(std::filesystem::path path, std::chrono::milliseconds patience, Existing,
            const std::function<void()>& on_wait = {});
  void lock(std::chrono::milliseconds patience = {}, const std::function<void()>& on_wait = {});
  // False if the folder was removed, or replaced, before it was locked.
  [[nodiscard]] bool is_in_place() const;

  std::filesystem::path path_;
  // The descriptor that holds the lock.
  int descriptor_ = -1;
  bool is_new_ = false;
};

/// The checkpoints of a run, in a folder of their own: step-N.safetensors is the state after N
/// steps. A checkpoint is either complete or absent, and older ones are kept until the new one is
/// complete.
class CheckpointFolder {
 public:
  /// The folder need not exist yet. Throws Error when `keep` is below 1.
  CheckpointFolder(std::filesystem::path path, std::int64_t keep);

  /// Writes the state after `steps` steps, then removes all but the newest `keep` checkpoints.
  /// Throws OutputError when the state cannot be written; nothing is removed then.
  std::filesystem::path write(std::int64_t steps, const State& state);

  /// The number of steps in the name of a checkpoint's file; empty for a file of another name.
  [[nodiscard]] static std::optional<std::int64_t> steps_of(const std::filesystem::path& file);
  /// The files of the checkpoints, newest first.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

  struct Found {
    std::filesystem::path file;
    State state;
  };
  /// The newest checkpoint that can be read; empty if there is none. `rejected` is called with the
  /// reason for each one that cannot be read. Throws Error for a checkpoint of a newer version,
  /// because the run would otherwise fall back to an older state.
  [[nodiscard]] std::optional<Found> newest(
      const std::function<void(const std::string& why)>& rejected) const;

 private:
  void remove_leftovers() const;

  std::filesystem::path path_;
  std::int64_t keep_;
};

/// Writes checkpoints of a trainer while it trains.
class Checkpointer final : public Observer {
 public:
  using SteadyClock = std::chrono::steady_clock;

  /// write() first calls `before_writing`, which flushes the files that a checkpoint relies on to
  /// the disk, and calls `on_written` when the checkpoint is complete, with the time at which
  /// writing began. Throws Error when the interval's count is below 1.
  Checkpointer(CheckpointFolder folder, CheckpointInterval interval,
               std::function<void()> before_writing = {},
               std::function<void(SteadyClock::time_point begin)> on_written = {});

  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void between_steps(Training& training) override;
  /// Writes the state from which a longer trace continues within the epoch, then holds (hold()).
  void on_cut_short(Training& training) override;

  /// Writes the state of a trainer after `steps` steps now, whether or not it is due.
  std::filesystem::path write(std::int64_t steps, const State& state);
  /// Writes an earlier state of a trainer that may be training on another thread meanwhile; the
  /// records up to this state must be on the disk already. Returns empty, without writing, if there
  /// is a checkpoint of as many steps or more.
  std::optional<std::filesystem::path> keep(std::int64_t steps, const State& state);
  /// Stops writing checkpoints because they are due; write() and keep() still do.
  void hold() { held_ = true; }
  [[nodiscard]] bool holds() const { return held_; }

 private:
  CheckpointFolder folder_;
  // Guards all changes of the folder.
  std::mutex writing_;
  CheckpointInterval interval_;
  bool held_ = false;
  std::function<void()> before_writing_;
  std::function<void(SteadyClock::time_point begin)> on_written_;
  // Steps, epochs and time since the last checkpoint.
  std::int64_t steps_ = 0;
  std::int64_t epochs_ = 0;
  SteadyClock::time_point since_ = SteadyClock::now();
};

}  // namespace rubato
