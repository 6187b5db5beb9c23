#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rubato {

/// The frame of a record in TensorFlow's record format (TFRecord): the length of the record in 8
/// bytes, little endian, and its checksum; then the record and its own.
struct RecordFrame {
  static constexpr std::size_t kHeader = 12;
  static constexpr std::size_t kFooter = 4;
};

/// Writes the frame around a record that lies in `frame` behind kHeader bytes and before kFooter
/// bytes.
void close_frame(std::span<std::byte> frame);

/// The CRC-32C of the bytes as the format keeps it: rotated right by 15 bits and a constant added,
/// because the checksum of what contains its own checksum says little.
[[nodiscard]] std::uint32_t masked_checksum(std::span<const std::byte> bytes);

}  // namespace rubato
