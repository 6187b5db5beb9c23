// MappedFile maps a regular file privately and read-only, and closes its descriptor as soon as that
// is done, because the mapping keeps the file open. GzipFile is a thin layer over zlib's gzread(),
// which unpacks gzip and passes other content through; it turns zlib's errors, some of which are
// only recorded and not returned, into messages that say what would be accepted. refuse_binary()
// recognises other formats by their first bytes, so that a reader of text fails with the name of
// the format instead of an error about its contents.

#include "input_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
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
}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
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
