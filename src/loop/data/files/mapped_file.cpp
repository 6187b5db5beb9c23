#include "mapped_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

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
    throw Error(fmt::format("{}: {}; accepted: {}", path.string(), why, accepted));
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

}  // namespace rubato
