#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>

#include <rubato/core/byte_sink.hpp>

namespace rubato {

/// The folder that holds all there is to know of a run. One process at a time works in it.
///
///     config.toml    what reproduces the run
///     trace.csv      the steps of the trace, unless it is a constant or built in; in modelled
///                    time availability.csv, the devices over time
///     given-*.pt     files that the configuration names: a model (given-model.pt)
///     metrics.jsonl  a line for each step and each epoch
///     events.out.tfevents.*  the same for TensorBoard, where it was asked for
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

}  // namespace rubato
