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

/// What a checkpoint says of the run beyond its training: the options it was made with, the files
/// that they name, and for how long it has been trained.
class RunRecord final : public Observer {
 public:
  /// `config` is the text of the run's configuration file. visit_state() throws Error where
  /// the files are not those that the checkpoint was trained with.
  RunRecord(std::string config, std::span<const WorkloadFile> files);

  [[nodiscard]] std::string_view name() const override { return "run"; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Of this process and those before it.
  [[nodiscard]] double wall_seconds() const { return seconds_before_ + since_.seconds(); }

 private:
  // SHA-256 of a file, and the option that names it.
  struct FileHash {
    std::string option;
    std::string hex;
  };

  std::string config_;
  std::vector<FileHash> files_;
  double seconds_before_ = 0;
  Stopwatch since_;
};

/// What a checkpoint says of the kernels that its run computed with.
class KernelRecord final : public Observer {
 public:
  /// `kernels` are those in use: kernels_text(). `libtorch` is the version of it; empty where
  /// nothing is computed by it.
  explicit KernelRecord(std::string kernels, std::string libtorch = {})
      : kernels_(std::move(kernels)), libtorch_(std::move(libtorch)) {}

  [[nodiscard]] std::string_view name() const override { return "kernels"; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// A line for the user, where the run goes on with other kernels or another libtorch than it had;
  /// empty where it does not.
  [[nodiscard]] const std::string& difference() const { return difference_; }

 private:
  std::string kernels_;
  std::string libtorch_;
  std::string difference_;
};

/// The configuration that a checkpoint was taken with, its names read by those that there are.
/// Throws Error where it has none, or one that this version does not read.
[[nodiscard]] RunConfiguration configuration_in(const State& checkpoint,
                                                const Extensions& extensions = {});

}  // namespace rubato
