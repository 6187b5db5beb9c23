#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/system/stopwatch.hpp"

namespace rubato {

/// The facts about a run that a checkpoint holds besides its training: the options it was made
/// with, the files that they name, and for how long it has been trained.
class RunRecord final : public Observer {
 public:
  /// `config` is the text of the run's configuration file. visit_state() throws Error if the files
  /// are not those that the checkpoint was trained with.
  RunRecord(std::string config, std::span<const WorkloadFile> files);

  [[nodiscard]] std::string_view name() const override { return "run"; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Seconds of training in this process and those before it.
  [[nodiscard]] double wall_seconds() const { return seconds_before_ + since_.seconds(); }

 private:
  // The SHA-256 of a file, and the option that names it.
  struct FileHash {
    std::string option;
    std::string hex;
  };

  std::string config_;
  std::vector<FileHash> files_;
  double seconds_before_ = 0;
  Stopwatch since_;
};

/// The kernels that the run of a checkpoint computed with.
class KernelRecord final : public Observer {
 public:
  /// `kernels` are those in use: kernels_text(). `libtorch` is its version; empty if it computes
  /// nothing.
  explicit KernelRecord(std::string kernels, std::string libtorch = {})
      : kernels_(std::move(kernels)), libtorch_(std::move(libtorch)) {}

  [[nodiscard]] std::string_view name() const override { return "kernels"; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// A line for the user if the run continues with other kernels or another libtorch than before;
  /// otherwise empty.
  [[nodiscard]] const std::string& difference() const { return difference_; }

 private:
  std::string kernels_;
  std::string libtorch_;
  std::string difference_;
};

/// The configuration that a checkpoint was taken with, its names read with `extensions`. Throws
/// Error if it has none, or one that this version cannot read.
[[nodiscard]] RunConfiguration configuration_in(const State& checkpoint,
                                                const Extensions& extensions = {});

}  // namespace rubato
