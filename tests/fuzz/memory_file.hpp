#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rubato::fuzz {

/// A file in memory with a path, for readers that want one.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : number_(memfd_create("fuzz", 0)) {
    if (number_ < 0 ||
        write(number_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { close(number_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::filesystem::path path() const {
    return fmt::format("/proc/self/fd/{}", number_);
  }

 private:
  int number_;
};

}  // namespace rubato::fuzz
