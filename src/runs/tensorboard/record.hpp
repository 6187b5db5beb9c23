#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace rubato
