#pragma once

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
#include <rubato/loop/observer.hpp>
#include <rubato/loop/training_options.hpp>

namespace rubato {

/// The folder that holds all there is to know of a run. One process at a time works in it.
///
///     config.toml    what reproduces the run
///     trace.csv      the steps of the trace, unless it is a constant or built in; in modelled
///                    time availability.csv, the devices over time
///     given-*.pt     files that the configuration names: a model (given-model.pt)
///     metrics.jsonl  a line for each step and each epoch
///     events.out.tfevents.*  the same for TensorBoard, where it was asked for
///     timeline.json  what each thread did in the steps of --timeline; timeline-2.json and so on
///                    of processes that went on with the run
///     hosts.log      how its groups of hosts came about, where hosts come and go
///     moved.txt      in which folder other hosts have gone on with the run, where they have
///     checkpoints/   states to go on from (CheckpointFolder)
///     summary.json   what it came to
///     best.pt        the model of the best epoch, where it was to be kept
///     weights.pt     the trained weights, for Python's torch.load
///     model.pt       the trained model, for Python's torch.jit.load, where it came as TorchScript
class RunFolder {
 public:
  /// Makes the folder and those above it. Throws Error when it exists or cannot be made.
  explicit RunFolder(std::filesystem::path path);
  /// The folder of a run that there is. Throws Error when there is none, and when another process
  /// works in it. One that has ended may hold it for a moment longer, until its threads have: that
  /// is waited for.
  [[nodiscard]] static RunFolder existing(std::filesystem::path path,
                                          std::chrono::milliseconds patience = {});
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  RunFolder& operator=(RunFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }

  /// write_file() in the folder, which is made again where it has gone.
  void write(std::string_view name, std::string_view content) const;
  void write(std::string_view name, const ByteSource& content) const;

 private:
  struct Existing {};
  RunFolder(std::filesystem::path path, std::chrono::milliseconds patience, Existing);
  void lock(std::chrono::milliseconds patience = {});

  std::filesystem::path path_;
  // Holds the lock.
  int descriptor_ = -1;
};

/// The checkpoints of a run, in a folder of their own: step-N.safetensors, the state after N steps.
/// A state is complete or not there; those before it stay until it is.
class CheckpointFolder {
 public:
  /// The folder need not exist yet. Throws Error when `keep` is below 1.
  CheckpointFolder(std::filesystem::path path, std::int64_t keep);

  /// Writes the state after `steps` steps, then removes all but the newest `keep`. Throws
  /// OutputError when the state could not be written; nothing is removed then.
  std::filesystem::path write(std::int64_t steps, const State& state);

  /// The number of steps in the name of a checkpoint's file; empty for a file of another name.
  [[nodiscard]] static std::optional<std::int64_t> steps_of(const std::filesystem::path& file);
  /// The files, newest first.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

  struct Found {
    std::filesystem::path file;
    State state;
  };
  /// The newest that can be read; `rejected` hears why one cannot. Empty where there is none. A
  /// newer version is an Error: what it would be passed over for is older.
  [[nodiscard]] std::optional<Found> newest(
      const std::function<void(const std::string& why)>& rejected) const;

 private:
  void remove_leftovers() const;

  std::filesystem::path path_;
  std::int64_t keep_;
};

/// Writes a trainer's checkpoints as it trains.
class Checkpointer final : public Observer {
 public:
  using SteadyClock = std::chrono::steady_clock;

  /// `before_writing` is called first, to bring to the disk what a checkpoint relies on, and
  /// `on_written` when a checkpoint is there, with when its writing began. Throws Error when the
  /// interval's count is below 1.
  Checkpointer(CheckpointFolder folder, CheckpointInterval interval,
               std::function<void()> before_writing = {},
               std::function<void(SteadyClock::time_point begin)> on_written = {});

  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void between_steps(Training& training) override;
  /// Writes the state from which a longer trace continues in the epoch, and holds.
  void on_cut_short(Training& training) override;

  /// Now, due or not: the state of a trainer after `steps` steps.
  std::filesystem::path write(std::int64_t steps, const State& state);
  /// On any thread: the same for what another thread has come to meanwhile, whose records are on
  /// the disk already. Empty where there is a checkpoint of as many steps, or a newer one.
  std::optional<std::filesystem::path> keep(std::int64_t steps, const State& state);
  /// From now on none is written because it is due.
  void hold() { held_ = true; }
  [[nodiscard]] bool holds() const { return held_; }

 private:
  CheckpointFolder folder_;
  // With it, what is in the folder is changed.
  std::mutex writing_;
  CheckpointInterval interval_;
  bool held_ = false;
  std::function<void()> before_writing_;
  std::function<void(SteadyClock::time_point begin)> on_written_;
  // Since the last checkpoint.
  std::int64_t steps_ = 0;
  std::int64_t epochs_ = 0;
  SteadyClock::time_point since_ = SteadyClock::now();
};

}  // namespace rubato
