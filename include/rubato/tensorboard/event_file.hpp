#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include <rubato/tensorboard/histogram.hpp>
#include <rubato/tensorboard/hyperparameter.hpp>

namespace rubato {

/// A number at a step of a curve. The tag names the curve; what stands before its last "/" is the
/// group that TensorBoard shows it in.
struct Scalar {
  std::string_view tag{};
  /// Kept in 32 bits.
  double value = 0;
};

/// A new event file of TensorBoard, which is shown when its name contains "tfevents". The wall time
/// of an event is that of the call.
///
/// Events are handed to the operating system about once a second, or when there are 64 KiB of them,
/// always as whole records: a reader sees no part of one, unless the disk is full.
///
/// All but path() and bytes() throw OutputError when the file cannot be written; what the file had
/// before is then still good.
class EventFile {
 public:
  /// Makes the file; one that is there is begun anew.
  explicit EventFile(std::filesystem::path path);
  /// Writes what is left, without a word where it cannot: flush() first.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// As one event.
  void write_scalars(std::int64_t step, std::span<const Scalar> scalars);
  void write_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram);
  /// What was made known of `step` and of later ones is void: for a reader that goes on with this
  /// file where it has read more of another than there is now.
  void write_restart(std::int64_t step);
  /// The session that this file and those beside it are of, for HPARAMS; once. Curves and what they
  /// end with are found by TensorBoard itself.
  void write_hyperparameters(std::span<const Hyperparameter> hyperparameters);
  /// That the session has ended, and whether well.
  void write_end(bool success);

  /// Hands all events to the operating system.
  void flush();
  /// And brings them to the disk. Throws OutputError, too, when the file has gone or is another.
  void sync();

  [[nodiscard]] const std::filesystem::path& path() const;
  /// Of all events, those included that are not handed over yet.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
