#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

namespace rubato {

/// A file mapped into memory: the system loads the parts that are read and drops them when memory
/// is short, so the file may be larger than memory. It must not be truncated in the meantime:
/// reading beyond its new end ends the process.
class MappedFile {
 public:
  /// Throws Error if it is not a regular file or cannot be read; the message names the wanted
  /// content as `accepted`.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                              std::string_view accepted);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// The contents, aligned to a page.
  [[nodiscard]] std::string_view bytes() const { return {begin_, size_}; }

  /// Removes the parts that were read from the process's memory, until they are read again.
  void forget() const;

 private:
  MappedFile(const char* begin, std::size_t size) : begin_(begin), size_(size) {}

  const char* begin_;
  std::size_t size_;
};

}  // namespace rubato
