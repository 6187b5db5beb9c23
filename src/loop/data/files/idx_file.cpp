#include "idx_file.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "gzip_file.hpp"

namespace rubato::detail {

namespace {

// A magic number is two zero bytes, the type of an element (8: unsigned byte) and the number of
// dimensions; the dimensions follow. All numbers are 32 bits, most significant byte first.
constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::size_t kWord = 4;

std::uint32_t magic_of(IdxKind kind) {
  return kind == IdxKind::images ? kImagesMagic : kLabelsMagic;
}

std::string_view name_of(IdxKind kind) {
  return kind == IdxKind::images ? "image" : "label";
}

std::string accepted(IdxKind kind) {
  return fmt::format("an IDX {} file (magic 0x{:08x}), raw or gzipped", name_of(kind),
                     magic_of(kind));
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  for (const std::uint8_t byte : bytes.first(kWord)) value = value << 8U | byte;
  return value;
}

// Describes the shape for messages.
std::string describe(IdxKind kind, const std::array<std::uint32_t, 3>& shape) {
  if (kind == IdxKind::labels) return fmt::format("{} labels", shape[0]);
  return fmt::format("{} images of {} x {} pixels", shape[0], shape[1], shape[2]);
}

void check_magic(const std::filesystem::path& path, IdxKind kind, std::uint32_t found) {
  if (found == magic_of(kind)) return;
  const IdxKind other = kind == IdxKind::images ? IdxKind::labels : IdxKind::images;
  const std::string hint =
      found == magic_of(other)
          ? fmt::format(", which is an IDX {} file: are images and labels swapped?", name_of(other))
          : std::string();
  throw Error(fmt::format("{}: its magic is 0x{:08x}{}; accepted: {}", path.string(), found, hint,
                          accepted(kind)));
}

std::array<std::uint32_t, 3> read_shape(GzipFile& file, const std::filesystem::path& path,
                                        IdxKind kind) {
  const std::size_t dimensions = kind == IdxKind::images ? 3 : 1;
  const std::size_t header_size = kWord * (1 + dimensions);
  std::array<std::uint8_t, kWord * 4> header{};
  const std::size_t found = file.read(std::span(header).first(header_size));
  // The magic is checked first: for a short file of another kind, the kind is the better message.
  if (found >= kWord) check_magic(path, kind, big_endian(header));
  if (found < header_size) {
    throw Error(fmt::format("{}: truncated: {} bytes where the header alone takes {}; accepted: {}",
                            path.string(), found, header_size, accepted(kind)));
  }
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  for (std::size_t d = 0; d < dimensions; ++d) {
    shape[d] = big_endian(std::span(header).subspan(kWord * (1 + d)));
  }
  return shape;
}

// Returns the bytes of a file of this shape after its header, or nothing if no file could hold
// them.
std::optional<std::uint64_t> payload_size(const std::array<std::uint32_t, 3>& shape) {
  const std::uint64_t image = std::uint64_t{shape[1]} * shape[2];
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (image > kMost / shape[0]) return std::nullopt;
  return image * shape[0];
}

// Returns the same; throws Error if a file cannot have the shape that its header claims.
std::uint64_t checked_payload_size(const std::filesystem::path& path, IdxKind kind,
                                   const std::array<std::uint32_t, 3>& shape) {
  if (std::ranges::find(shape, 0U) != shape.end()) {
    throw Error(fmt::format("{}: its header says {}; accepted: at least one {}", path.string(),
                            describe(kind, shape),
                            kind == IdxKind::images ? "image of one pixel" : "label"));
  }
  const auto size = payload_size(shape);
  if (!size) {
    throw Error(fmt::format("{}: its header says {}, more than any file holds; accepted: {}",
                            path.string(), describe(kind, shape), accepted(kind)));
  }
  return *size;
}

[[noreturn]] void fail_truncated(const std::filesystem::path& path, std::uint64_t found,
                                 const std::string& claim, std::uint64_t size) {
  throw Error(fmt::format("{}: truncated: {} bytes of data where its header says {}; accepted: {}",
                          path.string(), found, claim, size));
}
[[noreturn]] void fail_too_long(const std::filesystem::path& path, const std::string& claim,
                                std::uint64_t size) {
  throw Error(fmt::format("{}: longer than its header says, {}; accepted: {} bytes of data",
                          path.string(), claim, size));
}

// Reads `size` bytes, or fewer if the file ends before.
std::vector<std::uint8_t> read_payload(GzipFile& file, std::uint64_t size) {
  // The room doubles as data arrive, so a wrong header costs no more memory than a small multiple
  // of the data that really exist.
  constexpr std::uint64_t kFirstRoom = std::uint64_t{1} << 20U;
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < size) {
    const std::size_t before = bytes.size();
    const auto room = static_cast<std::size_t>(std::min(size, std::max(kFirstRoom, 2 * before)));
    bytes.reserve(room);  // exactly: resize alone may double the room past `size`
    bytes.resize(room);
    const std::size_t got = file.read(std::span(bytes).subspan(before));
    bytes.resize(before + got);
    if (bytes.size() < room) break;
  }
  return bytes;
}

}  // namespace

IdxFile read_idx_file(const std::filesystem::path& path, IdxKind kind) {
  GzipFile file(path, accepted(kind));
  IdxFile result{.shape = read_shape(file, path, kind), .bytes = {}};
  const std::string claim = describe(kind, result.shape);
  const std::uint64_t size = checked_payload_size(path, kind, result.shape);
  result.bytes = read_payload(file, size);
  if (result.bytes.size() < size) fail_truncated(path, result.bytes.size(), claim, size);
  // This read also reaches the end of a gzip stream, and with it the checksum.
  std::array<std::uint8_t, 1> beyond{};
  if (file.read(beyond) != 0) fail_too_long(path, claim, size);
  return result;
}

std::optional<MappedIdx> map_idx_file(const std::filesystem::path& path, IdxKind kind) {
  constexpr std::string_view kGzip = "\x1F\x8B";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  MappedIdx result{.file = MappedFile::open(path, accepted(kind))};
  if (result.file->bytes().starts_with(kGzip)) return std::nullopt;
  {
    GzipFile file(path, accepted(kind));
    result.shape = read_shape(file, path, kind);
  }
  const std::uint64_t size = checked_payload_size(path, kind, result.shape);
  result.bytes = result.file->bytes().substr(kind == IdxKind::images ? 4 * kWord : 2 * kWord);
  const std::string claim = describe(kind, result.shape);
  if (result.bytes.size() < size) fail_truncated(path, result.bytes.size(), claim, size);
  if (result.bytes.size() > size) fail_too_long(path, claim, size);
  return result;
}

}  // namespace rubato::detail
