#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct gzFile_s;  // zlib's, so that zlib.h stays out of this header

namespace rubato::detail {

/// A file read front to back, decompressed on the way when its content is gzip; any other content
/// is passed on as it is. What follows a gzip stream and is no gzip is ignored, as gzip does.
class GzipFile {
 public:
  /// Throws Error when the file cannot be opened or is a folder; `accepted` says in the message
  /// what was wanted ("an IDX image file").
  GzipFile(const std::filesystem::path& path, std::string accepted);

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end of the
  /// file. Throws Error on a read error and on a gzip stream that is cut off or fails its checksum;
  /// the checksum is known to be right only once a read has met the end.
  [[nodiscard]] std::size_t read(std::span<std::uint8_t> bytes);

 private:
  [[noreturn]] void fail() const;

  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::filesystem::path path_;
  std::string accepted_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace rubato::detail
