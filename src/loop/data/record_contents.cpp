#include "record_contents.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include <rubato/base/error.hpp>

#include "base/core/system/memory.hpp"

namespace rubato {

namespace {

// zlib counts in 32 bits.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;

// Continues the checksum `before` of the preceding bytes.
std::uint32_t checksum_of(std::string_view bytes, std::uint32_t before = 0) {
  uLong checksum = before;
  while (!bytes.empty()) {
    const std::size_t next = std::min(bytes.size(), kMostAtOnce);
    checksum =
        crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(next));
    bytes.remove_prefix(next);
  }
  return static_cast<std::uint32_t>(checksum);
}

// Unpacks a record, and verifies its size and checksum.
class Inflation {
 public:
  Inflation(const ZipRecord& record, const std::string& name, std::string_view accepted)
      : record_(record), name_(name), accepted_(accepted), packed_(record.bytes) {
    // Two bits of deflate yield at most 258 bytes.
    constexpr std::uint64_t kMostOfByte = 1032;
    if (record.size / kMostOfByte > record.bytes.size()) {
      fail(fmt::format("claims {} bytes, which {} packed ones cannot hold", record.size,
                       record.bytes.size()));
    }
    require_memory(static_cast<double>(record.size), fmt::format("{}, unpacked, needs", name),
                   "data saved without compression are not unpacked");
    // The stream is raw deflate: a zip archive keeps the checksum in its directory.
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflation() { inflateEnd(&stream_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  // Returns the next piece, valid until the next call; empty at the end of an intact record.
  [[nodiscard]] std::string_view next() {
    if (done_ == record_.size && state_ == Z_STREAM_END) return {};
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    while (state_ == Z_OK && stream_.avail_out > 0) {
      if (stream_.avail_in == 0 && !packed_.empty()) add_input();
      state_ = inflate(&stream_, Z_NO_FLUSH);
    }
    const std::string_view piece(piece_.data(), piece_.size() - stream_.avail_out);
    done_ += piece.size();
    checksum_ = checksum_of(piece, checksum_);
    const bool is_damaged = state_ != Z_OK && state_ != Z_STREAM_END;
    const bool has_ended = state_ == Z_STREAM_END;
    if (is_damaged || done_ > record_.size || (has_ended && done_ != record_.size)) {
      fail("is damaged");
    }
    if (has_ended && checksum_ != record_.checksum) fail("fails its checksum");
    return piece;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(fmt::format("{} {}; accepted: {}", name_, why, accepted_));
  }

  void add_input() {
    const std::size_t next = std::min(packed_.size(), kMostAtOnce);
    // zlib only reads these bytes.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
    stream_.avail_in = static_cast<uInt>(next);
    packed_.remove_prefix(next);
  }

  const ZipRecord& record_;
  const std::string& name_;
  std::string_view accepted_;
  std::string_view packed_;
  z_stream stream_{};
  int state_ = Z_OK;
  std::string piece_ = std::string(std::size_t{1} << 16U, '\0');
  std::uint64_t done_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace

std::shared_ptr<const std::string> inflated(const ZipRecord& record, const std::string& name,
                                            std::string_view accepted) {
  Inflation inflation(record, name, accepted);
  auto bytes = std::make_shared<std::string>();
  for (std::string_view piece = inflation.next(); !piece.empty(); piece = inflation.next()) {
    const std::size_t size = bytes->size() + piece.size();
    // The room doubles, but never exceeds the claimed size.
    if (bytes->capacity() < size) {
      bytes->reserve(std::max(size, std::min(2 * size, static_cast<std::size_t>(record.size))));
    }
    *bytes += piece;
  }
  return bytes;
}

std::string inflated_beginning(const ZipRecord& record, const std::string& name,
                               std::string_view accepted) {
  return std::string(Inflation(record, name, accepted).next());
}

void require_intact(const ZipRecord& record, const std::string& name, std::string_view accepted) {
  if (record.deflated) {
    Inflation inflation(record, name, accepted);
    while (!inflation.next().empty()) {
    }
  } else if (checksum_of(record.bytes) != record.checksum) {
    throw Error(fmt::format("{} fails its checksum; accepted: {}", name, accepted));
  }
}

void require_intact(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted) {
  for (const auto& [name, record] : records) {
    require_intact(record, fmt::format("{}: '{}'", source, name), accepted);
  }
}

}  // namespace rubato
