#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

namespace rubato {

/// A file that is read where it lies: the system brings in the parts that are looked at and drops
/// them when memory is short, so that it may be larger than memory. It is not to be made shorter in
/// the meantime: reading what is no longer there ends the process.
class MappedFile {
 public:
  /// Throws Error for what is no regular file, and where it cannot be read; `accepted` says what is
  /// wanted.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                              std::string_view accepted);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Aligned to a page.
  [[nodiscard]] std::string_view bytes() const { return {begin_, size_}; }

  /// Takes the parts that were looked at out of the process's memory, until they are looked at
  /// again.
  void forget() const;

 private:
  MappedFile(const char* begin, std::size_t size) : begin_(begin), size_(size) {}

  const char* begin_;
  std::size_t size_;
};

}  // namespace rubato
