#include "tar_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "loop/data/files/gzip_file.hpp"

namespace rubato::app {

namespace {

// POSIX's ustar: a header of one block, and then the file in whole blocks.
constexpr std::size_t kBlock = 512;
using Block = std::array<std::uint8_t, kBlock>;

struct Field {
  std::size_t begin;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;

std::string_view text_of(const Block& header, Field field) {
  const std::string_view all(reinterpret_cast<const char*>(header.data()) + field.begin,
                             field.size);
  return all.substr(0, all.find('\0'));
}

// Octal digits, perhaps with blanks around; -1 where they are none.
std::int64_t number_of(const Block& header, Field field) {
  std::int64_t number = -1;
  for (const char c : text_of(header, field)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return -1;
    number = std::max<std::int64_t>(number, 0) * 8 + (c - '0');
  }
  return number;
}

// The sum of the header's bytes, with blanks for its own.
bool has_right_checksum(const Block& header) {
  Block copy = header;
  std::fill_n(copy.begin() + kChecksum.begin, kChecksum.size, std::uint8_t{' '});
  return number_of(header, kChecksum) == std::accumulate(copy.begin(), copy.end(), std::int64_t{0});
}

class TarReader {
 public:
  explicit TarReader(const std::filesystem::path& archive)
      : archive_(archive), file_(archive, "an archive .tar.gz") {}

  // False at the end.
  bool next(Block& header) {
    const std::size_t count = file_.read(header);
    if (count == 0) return false;
    if (count < kBlock) reject();
    // A block of zeros ends it.
    if (std::ranges::all_of(header, [](std::uint8_t byte) { return byte == 0; })) return false;
    if (!has_right_checksum(header)) reject();
    return true;
  }

  // The bytes of a file, and what fills its last block.
  void pass(std::int64_t size, const ByteSink& sink) {
    for (std::int64_t left = size; left > 0; left -= static_cast<std::int64_t>(kBlock)) {
      Block block;
      if (file_.read(block) < kBlock) reject();
      const auto count = std::min<std::size_t>(kBlock, static_cast<std::size_t>(left));
      sink({reinterpret_cast<const char*>(block.data()), count});
    }
  }

  [[noreturn]] void reject() const {
    throw Error(fmt::format("{}: is no whole archive; accepted: a .tar.gz", archive_.string()));
  }

 private:
  std::filesystem::path archive_;
  detail::GzipFile file_;
};

}  // namespace

void read_tar_gz(const std::filesystem::path& archive,
                 const std::function<void(const std::string& name, std::int64_t size,
                                          const ByteSource& bytes)>& take) {
  TarReader reader(archive);
  for (Block header; reader.next(header);) {
    const std::int64_t size = number_of(header, kSize);
    if (size < 0) reader.reject();
    bool passed = false;
    const ByteSource bytes = [&](const ByteSink& sink) {
      passed = true;
      reader.pass(size, sink);
    };
    const char type = static_cast<char>(header[kType]);
    const std::string name = std::filesystem::path(text_of(header, kName)).filename().string();
    if (type == '0' || type == '\0') take(name, size, bytes);
    if (!passed) reader.pass(size, [](std::string_view) {});
  }
}

}  // namespace rubato::app
