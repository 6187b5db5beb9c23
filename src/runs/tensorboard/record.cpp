#include "record.hpp"

#include <bit>
#include <cstring>

#include <isa-l/crc.h>

namespace rubato {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr int kRotation = 15;
constexpr std::uint32_t kMask = 0xa282ead8;

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  // ISA-L only reads, although its interface lacks the const, and counts in int. It leaves the
  // inversions at both ends to its caller.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::uint32_t crc = 0xffffffff;
  for (std::size_t left = bytes.size(); left > 0;) {
    const std::size_t part = left < kMost ? left : kMost;
    crc = crc32_iscsi(data, static_cast<int>(part), crc);
    data += part;
    left -= part;
  }
  return ~crc;
}

}  // namespace

std::uint32_t masked_checksum(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), kRotation) + kMask;
}

void close_frame(std::span<std::byte> frame) {
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(frame.data() + at, &value, sizeof(value));
  };
  const std::uint64_t length = frame.size() - RecordFrame::kHeader - RecordFrame::kFooter;
  put(0, length);
  put(sizeof(length), masked_checksum(frame.first(sizeof(length))));
  put(RecordFrame::kHeader + length, masked_checksum(frame.subspan(RecordFrame::kHeader, length)));
}

}  // namespace rubato
