#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/core/stopwatch.hpp>
#include <rubato/recipe/checkpoint_interval.hpp>
#include <rubato/state/state.hpp>
#include <rubato/train/observer.hpp>

namespace rubato {

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
  /// `before_writing` is called first, to bring to the disk what a checkpoint relies on. Throws
  /// Error when the interval's count is below 1.
  Checkpointer(CheckpointFolder folder, CheckpointInterval interval,
               std::function<void()> before_writing = {});

  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void between_steps(Training& training) override;

  /// Now, due or not: the state of a trainer after `steps` steps.
  std::filesystem::path write(std::int64_t steps, const State& state);
  /// From now on none is written because it is due.
  void hold() { held_ = true; }

 private:
  CheckpointFolder folder_;
  CheckpointInterval interval_;
  bool held_ = false;
  std::function<void()> before_writing_;
  // Since the last checkpoint.
  std::int64_t steps_ = 0;
  std::int64_t epochs_ = 0;
  Stopwatch since_;
};

}  // namespace rubato
