// The directory at the end of an archive is the only source of names, sizes and positions; local
// headers are read only to find where the contents begin. Offsets, signatures and the extension to
// 64 bits are those of APPNOTE.TXT, the description of the format. Every number is read by number()
// and part(), which check that it lies within the file, and the packed sizes of all records
// together may not exceed the file, which bounds the work for archives whose records overlap.
// Inflation unpacks in pieces of 64 KiB; it refuses sizes that deflate cannot reach before it
// begins, and stops as soon as the contents exceed the size that the directory claims. libzip would
// copy stored records, which are mapped here (docs/adr/0043-data-are-rows-where-they-lie.md).

#include "zip_archive.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t kEnd = 0x06054b50;
constexpr std::uint64_t kEnd64Locator = 0x07064b50;
constexpr std::uint64_t kEnd64 = 0x06064b50;
constexpr std::uint64_t kEntry = 0x02014b50;
constexpr std::uint64_t kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64LocatorBytes = 20;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;
constexpr std::uint64_t kStored = 0;
constexpr std::uint64_t kDeflated = 8;
constexpr std::uint64_t kFolder = 0x10;

class ZipReader {
 public:
  ZipReader(std::string_view bytes, const std::string& source, std::string_view accepted)
      : bytes_(bytes), source_(source), accepted_(accepted) {}

  std::map<std::string, ZipRecord> records() {
    std::map<std::string, ZipRecord> records;
    std::map<std::string, std::string_view> whole_names;
    std::uint64_t total = 0;
    std::uint64_t at = directory();
    for (std::uint64_t i = 0; i < entries_; ++i) {
      require(number(at, 4) == kEntry, "its directory is damaged");
      const std::uint64_t name_bytes = number(at + 28, 2);
      const std::uint64_t extra_bytes = number(at + 30, 2);
      const std::string_view name = part(at + kEntryBytes, name_bytes);
      const ZipRecord record =
          record_of(at, name, part(at + kEntryBytes + name_bytes, extra_bytes));
      total += record.bytes.size();
      require(total <= bytes_.size(), "its records overlap");
      // The records lie in a folder that has the original name of the file.
      const std::string within(name.substr(std::min(name.find('/') + 1, name.size())));
      const std::string_view same = whole_names.try_emplace(within, name).first->second;
      if (same != name)
        fail(fmt::format("its records '{}' and '{}' differ only in a folder", same, name));
      records.insert_or_assign(within, record);
      at += kEntryBytes + name_bytes + extra_bytes + number(at + 32, 2);
    }
    return records;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw_error("{}: {}; accepted: {}", source_, why, accepted_);
  }
  void require(bool good, const char* why) const {
    if (!good) fail(why);
  }

  [[nodiscard]] std::string_view part(std::uint64_t begin, std::uint64_t size) const {
    require(begin <= bytes_.size() && size <= bytes_.size() - begin, "it is cut off");
    return bytes_.substr(begin, size);
  }
  // Reads a little-endian number of up to 8 bytes.
  [[nodiscard]] std::uint64_t number(std::uint64_t begin, std::size_t size) const {
    std::uint64_t value = 0;
    const std::string_view digits = part(begin, size);
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8U | static_cast<unsigned char>(digits[i]);
    }
    return value;
  }

  // Returns the beginning of the directory; sets the number of its entries.
  std::uint64_t directory() {
    constexpr std::size_t kLongestComment = 0xFFFF;
    require(bytes_.size() >= kEndBytes, "it is not a zip archive");
    const std::size_t last = bytes_.size() - kEndBytes;
    for (std::size_t back = 0; back <= std::min(last, kLongestComment); ++back) {
      const std::size_t end = last - back;
      if (number(end, 4) != kEnd) continue;
      if (end >= kEnd64LocatorBytes && number(end - kEnd64LocatorBytes, 4) == kEnd64Locator) {
        const std::uint64_t end64 = number(end - kEnd64LocatorBytes + 8, 8);
        require(number(end64, 4) == kEnd64, "its directory is damaged");
        entries_ = number(end64 + 32, 8);
        return number(end64 + 48, 8);
      }
      entries_ = number(end + 10, 2);
      return number(end + 16, 4);
    }
    fail("it is not a zip archive");
  }

  [[nodiscard]] ZipRecord record_of(std::uint64_t entry, std::string_view name,
                                    std::string_view extra) const {
    const std::uint64_t method = number(entry + 10, 2);
    const bool deflated = method == kDeflated;
    if (!deflated && method != kStored) {
      fail(fmt::format("its record '{}' is compressed by method {}", name, method));
    }
    std::uint64_t stored = number(entry + 20, 4);
    std::uint64_t size = number(entry + 24, 4);
    std::uint64_t local = number(entry + 42, 4);
    // Numbers that are too large for their field are stored after the name, in this order.
    std::uint64_t at = static_cast<std::uint64_t>(extra.data() - bytes_.data());
    const std::uint64_t end = at + extra.size();
    while (at + 4 <= end && number(at, 2) != 1) at += 4 + number(at + 2, 2);
    at += 4;
    for (std::uint64_t* const value : {&size, &stored, &local}) {
      if (*value != kIn64) continue;
      require(at + 8 <= end, "its directory is damaged");
      *value = number(at, 8);
      at += 8;
    }
    require(deflated || stored == size, "its directory is damaged");
    // Other readers, libtorch's among them, ignore the contents of a folder.
    const bool is_folder = name.ends_with('/') || (number(entry + 38, 1) & kFolder) != 0;
    require(!is_folder || size == 0, "its directory is damaged");
    require(number(local, 4) == kLocal, "its directory is damaged");
    const std::uint64_t begin = local + kLocalBytes + number(local + 26, 2) + number(local + 28, 2);
    return {.bytes = part(begin, stored),
            .deflated = deflated,
            .size = size,
            .checksum = static_cast<std::uint32_t>(number(entry + 16, 4))};
  }

  std::string_view bytes_;
  const std::string& source_;
  std::string_view accepted_;
  std::uint64_t entries_ = 0;
};

}  // namespace

std::map<std::string, ZipRecord> zip_directory(std::string_view bytes, const std::string& source,
                                               std::string_view accepted) {
  return ZipReader(bytes, source, accepted).records();
}

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
    throw_error("{} {}; accepted: {}", name_, why, accepted_);
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
    throw_error("{} fails its checksum; accepted: {}", name, accepted);
  }
}

void require_intact(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted) {
  for (const auto& [name, record] : records) {
    require_intact(record, fmt::format("{}: '{}'", source, name), accepted);
  }
}

}  // namespace rubato
