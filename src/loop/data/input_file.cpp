// MappedFile maps a regular file privately and read-only, and closes its descriptor as soon as that
// is done, because the mapping keeps the file open. GzipFile unpacks by ISA-L, in half of zlib's
// time, what is plainly one gzip stream. Everything else is read by zlib's gzread(), from the
// beginning: it passes other content through, goes on to further streams, and knows the reason why
// a stream is damaged. Its errors, some of which are only recorded and not returned, become
// messages that say what would be accepted. refuse_binary() recognises other formats by their first
// bytes, so that a reader of text fails with the name of the format instead of an error about its
// contents.

#include "input_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   std::string_view accepted) {
  const auto fail = [&](const std::string& why) {
    throw_error("{}: {}; accepted: {}", path.string(), why, accepted);
  };
  // Opening a pipe would wait for a writer.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    fail(error ? error.message() : "is not a regular file");
  }
  const Descriptor file(path);
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) {
    fail(std::generic_category().message(errno));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* begin = nullptr;
  if (size > 0) {
    begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (begin == MAP_FAILED) {
      fail(fmt::format("cannot be mapped into memory: {}", std::generic_category().message(errno)));
    }
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(begin), size));
}

// This is only a hint, so errors are ignored.
void MappedFile::forget() const {
  if (size_ > 0) static_cast<void>(madvise(const_cast<char*>(begin_), size_, MADV_DONTNEED));
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<char*>(begin_), size_);
}

void refuse_binary(std::string_view beginning, const std::filesystem::path& path,
                   std::string_view accepted) {
  struct Format {
    std::string_view magic;
    std::string_view name;
  };
  constexpr std::array<Format, 13> kFormats{{{"\x1F\x8B", "packed by gzip"},
                                             {"PK\x03\x04", "a ZIP archive or a spreadsheet"},
                                             {"PAR1", "in Parquet"},
                                             {"\xD0\xCF\x11\xE0", "a document of Office"},
                                             {"BZh", "packed by bzip2"},
                                             {"\xFD\x37zXZ", "packed by xz"},
                                             {"\x28\xB5\x2F\xFD", "packed by Zstandard"},
                                             {"7z\xBC\xAF", "a 7z archive"},
                                             {"\x89HDF", "in HDF5"},
                                             {"ARROW1", "in Arrow's format"},
                                             {"SQLite format 3", "a database of SQLite"},
                                             {"\x93NUMPY", "an array of numpy"},
                                             {"%PDF-", "in PDF"}}};
  for (const Format& format : kFormats) {
    if (!beginning.starts_with(format.magic)) continue;
    throw_error("{}: it is {}, not text; accepted: {}", path.string(), format.name, accepted);
  }
}

}  // namespace rubato

namespace rubato::detail {

// Unpacks the stream of a gzip file.
class GzipFile::Unpacker {
 public:
  // Null unless this is a regular file that begins as a gzip stream.
  static std::unique_ptr<Unpacker> open(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return nullptr;
    auto unpacker = std::make_unique<Unpacker>(path);
    if (unpacker->file_.number() < 0 || !unpacker->refill()) return nullptr;
    // ISA-L does not mind flags that zlib refuses.
    constexpr std::uint8_t kOddFlags = 0xE2;
    const std::vector<std::uint8_t>& piece = unpacker->piece_;
    const bool is_plain = unpacker->state_.avail_in > 3 && piece[0] == 0x1F && piece[1] == 0x8B &&
                          piece[2] == Z_DEFLATED && (piece[3] & kOddFlags) == 0;
    return is_plain ? std::move(unpacker) : nullptr;
  }

  explicit Unpacker(const std::filesystem::path& path) : file_(path) {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  // Fills `bytes`, or returns a smaller number at the end of the file. Empty for everything else
  // than an undamaged stream with nothing behind it.
  std::optional<std::size_t> read(std::span<std::uint8_t> bytes) {
    constexpr std::size_t kMost = std::size_t{1} << 30U;
    std::size_t done = 0;
    while (done < bytes.size()) {
      const bool ended = state_.avail_in == 0 && !refill();
      if (state_.block_state == ISAL_BLOCK_FINISH) {
        if (!ended || state_.read_in_length > 0) return std::nullopt;
        break;
      }
      const std::size_t room = std::min(bytes.size() - done, kMost);
      state_.next_out = bytes.data() + done;
      state_.avail_out = static_cast<std::uint32_t>(room);
      if (isal_inflate(&state_) != ISAL_DECOMP_OK) return std::nullopt;
      done += room - state_.avail_out;
      const bool stuck = state_.avail_out == room && state_.block_state != ISAL_BLOCK_FINISH;
      if (ended && stuck) return std::nullopt;
    }
    return done;
  }

 private:
  // Reads on; false at the end of the file, and if it cannot be read.
  bool refill() {
    const auto got = ::read(file_.number(), piece_.data(), piece_.size());
    if (got <= 0) return false;
    state_.next_in = piece_.data();
    state_.avail_in = static_cast<std::uint32_t>(got);
    return true;
  }

  Descriptor file_;
  // Larger pieces gain nothing.
  std::vector<std::uint8_t> piece_ = std::vector<std::uint8_t>(std::size_t{1} << 18U);
  inflate_state state_{};
};

namespace {

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

void GzipFile::Close::operator()(gzFile_s* file) const {
  // Closing could only report a stream that was not read to its end. read() has reported it
  // already, or the reader stopped early and does not need to know.
  static_cast<void>(gzclose_r(file));
}

GzipFile::GzipFile(const std::filesystem::path& path, std::string accepted)
    : path_(path), accepted_(std::move(accepted)) {
  // A folder can be opened for reading; only the first read would fail, with a worse message.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw_error("{}: is a folder; accepted: {}", path.string(), accepted_);
  }
  errno = 0;  // zlib does not set it if memory is short
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) {
    const int error_number = errno == 0 ? ENOMEM : errno;
    throw_error("{}: cannot be read: {}; accepted: {}", path.string(), system_message(error_number),
                accepted_);
  }
  // Larger buffers than a quarter MiB gain nothing; zlib's default of 8 KiB is slower.
  static_cast<void>(gzbuffer(file_.get(), 1U << 18U));
  unpacker_ = Unpacker::open(path);
}

GzipFile::~GzipFile() = default;

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
  if (unpacker_) {
    if (const auto done = unpacker_->read(bytes)) {
      given_ += *done;
      return *done;
    }
    unpacker_.reset();
    // The bytes are skipped when the next ones are read.
    if (gzseek(file_.get(), static_cast<z_off_t>(given_), SEEK_SET) < 0) fail();
  }
  return read_by_zlib(bytes);
}

std::size_t GzipFile::read_by_zlib(std::span<std::uint8_t> bytes) {
  // gzread takes and returns an int; no caller asks for that much at once.
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto asked = static_cast<unsigned>(std::min(bytes.size() - done, kMost));
    const int got = gzread(file_.get(), bytes.data() + done, asked);
    if (got < 0) fail();
    done += static_cast<std::size_t>(got);
    if (static_cast<unsigned>(got) < asked) {
      // At the end, or in a broken gzip stream, zlib returns the bytes that it has and only records
      // the error.
      int code = Z_OK;
      static_cast<void>(gzerror(file_.get(), &code));
      if (code != Z_OK) fail();
      break;
    }
  }
  return done;
}

void GzipFile::fail() const {
  const int error_number = errno;
  int code = Z_OK;
  std::string_view reason = gzerror(file_.get(), &code);
  if (code == Z_ERRNO) {
    throw_error("{}: cannot be read: {}; accepted: {}", path_.string(),
                system_message(error_number), accepted_);
  }
  // Most reasons of zlib begin with the name of the file.
  if (const std::string name = path_.string() + ": "; reason.starts_with(name)) {
    reason.remove_prefix(name.size());
  }
  throw_error("{}: the gzip stream is {}: {}; accepted: {}, undamaged", path_.string(),
              code == Z_BUF_ERROR ? "truncated" : "damaged", reason, accepted_);
}

}  // namespace rubato::detail
