#include "record_contents.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include <rubato/core/error.hpp>

#include "core/memory.hpp"

namespace rubato {

namespace {

// zlib counts in 32 bits.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;

std::uint32_t checksum_of(std::string_view bytes) {
  uLong checksum = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const std::size_t next = std::min(bytes.size(), kMostAtOnce);
    checksum =
        crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(next));
    bytes.remove_prefix(next);
  }
  return static_cast<std::uint32_t>(checksum);
}

}  // namespace

std::shared_ptr<const std::string> inflated(const ZipRecord& record, const std::string& name,
                                            std::string_view accepted) {
  const auto fail = [&](std::string_view why) {
    throw Error(fmt::format("{} {}; accepted: {}", name, why, accepted));
  };
  require_memory(static_cast<double>(record.size), fmt::format("{}, unpacked, needs", name),
                 "what is saved without compression is read where it lies");
  z_stream stream{};
  // Raw deflate: a zip archive has the checksum in its directory.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const auto end = [](z_stream* used) { inflateEnd(used); };
  const std::unique_ptr<z_stream, decltype(end)> guard(&stream, end);
  constexpr std::size_t kFirstRoom = std::size_t{1} << 16U;
  auto bytes = std::make_shared<std::string>();
  std::string_view packed = record.bytes;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && !packed.empty()) {
      const std::size_t next = std::min(packed.size(), kMostAtOnce);
      // zlib only reads.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(next);
      packed.remove_prefix(next);
    }
    const std::size_t before = bytes->size();
    if (before > record.size) break;
    // One byte more than there should be, so that a stream that is too long is seen.
    const std::size_t room =
        std::min({std::max(before, kFirstRoom), static_cast<std::size_t>(record.size) + 1 - before,
                  kMostAtOnce});
    if (room == 0) break;
    bytes->reserve(before + room);
    bytes->resize(before + room);
    stream.next_out = reinterpret_cast<Bytef*>(bytes->data() + before);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    bytes->resize(before + room - stream.avail_out);
  }
  if (state != Z_STREAM_END || bytes->size() != record.size) fail("is damaged");
  if (checksum_of(*bytes) != record.checksum) fail("fails its checksum");
  return bytes;
}

void require_intact(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted) {
  for (const auto& [name, record] : records) {
    const std::string place = fmt::format("{}: '{}'", source, name);
    if (record.deflated) {
      static_cast<void>(inflated(record, place, accepted));
    } else if (checksum_of(record.bytes) != record.checksum) {
      throw Error(fmt::format("{} fails its checksum; accepted: {}", place, accepted));
    }
  }
}

}  // namespace rubato
