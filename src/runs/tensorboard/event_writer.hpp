#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/tensorboard.hpp>

namespace rubato {

/// A record of TensorFlow's record format (TFRecord): a header with the length of the record in 8
/// bytes, little endian, and the checksum of these; the record; a footer with its checksum.
struct RecordFrame {
  static constexpr std::size_t kHeader = 12;
  static constexpr std::size_t kFooter = 4;
};

/// Writes the header and the footer around a record that lies in `frame`, which has space for both.
void close_frame(std::span<std::byte> frame);

/// The CRC-32C of the bytes as the format stores it: rotated right by 15 bits, plus a constant.
/// Without that, a CRC of data that contain CRCs would detect fewer errors.
[[nodiscard]] std::uint32_t masked_checksum(std::span<const std::byte> bytes);

/// Appends events to a buffer, as records of an event file. Keeps its memory from one event to the
/// next.
class EventWriter {
 public:
  EventWriter();
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// The wall time of the events that follow, in seconds since 1970.
  void set_wall_time(double seconds) { wall_time_ = seconds; }

  /// The event that every file begins with.
  void write_version(std::vector<std::byte>& out);
  void write_scalars(std::int64_t step, std::span<const Scalar> scalars,
                     std::vector<std::byte>& out);
  void write_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram,
                       std::vector<std::byte>& out);
  void write_restart(std::int64_t step, std::vector<std::byte>& out);
  void write_hyperparameters(std::span<const Hyperparameter> hyperparameters,
                             std::vector<std::byte>& out);
  void write_end(bool success, std::vector<std::byte>& out);
  void write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                        std::span<const std::string> metrics, std::vector<std::byte>& out);

 private:
  struct Messages;
  void append(std::int64_t step, std::vector<std::byte>& out);
  void append_hparams(std::string_view tag, std::vector<std::byte>& out);

  double wall_time_ = 0;
  std::unique_ptr<Messages> messages_;
};

}  // namespace rubato
