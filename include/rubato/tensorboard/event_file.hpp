#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <rubato/tensorboard/histogram.hpp>
#include <rubato/tensorboard/hyperparameter.hpp>

namespace rubato {

/// A value of a curve at a step. The tag names the curve; TensorBoard groups curves by the part of
/// the tag before its first "/".
struct Scalar {
  std::string_view tag{};
  /// Stored as a 32-bit float.
  double value = 0;
};

/// Writes a new event file of TensorBoard, which finds files whose names contain "tfevents". The
/// wall time of an event is that of the call.
///
/// Events are buffered, and handed to the operating system once a second or whenever 64 KiB of them
/// have accumulated. Only whole records are written, so a reader never sees part of one.
///
/// Every operation but path() and bytes() throws OutputError when the file cannot be written. The
/// events that were in the file before stay readable, and the file may be written to again.
class EventFile {
 public:
  /// Creates the file, or truncates one that exists.
  explicit EventFile(std::filesystem::path path);
  /// Writes the buffered events and ignores errors; call flush() first to hear of them.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Writes all of them as one event.
  void write_scalars(std::int64_t step, std::span<const Scalar> scalars);
  void write_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram);
  /// Says that training goes on at `step`. TensorBoard then drops what it has read of this step and
  /// of later ones, also from earlier files of the same folder.
  void write_restart(std::int64_t step);
  /// Says what the run in this folder was made with: a row of HPARAMS. To be called at most once;
  /// TensorBoard takes the metrics of the row from the ends of the run's curves.
  void write_hyperparameters(std::span<const Hyperparameter> hyperparameters);
  /// Says that the run has ended, and whether it succeeded.
  void write_end(bool success);
  /// Says which columns HPARAMS shows of all runs below this folder: hyperparameters, and curves by
  /// their tags.
  void write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                        std::span<const std::string> metrics);

  /// Hands the buffered events to the operating system.
  void flush();
  /// Flushes, and waits until the events are on the disk. Also throws OutputError when the file was
  /// removed or replaced.
  void sync();

  [[nodiscard]] const std::filesystem::path& path() const;
  /// The length of the file with the events that are still buffered.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
