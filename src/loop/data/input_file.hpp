#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
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

/// Throws Error if the beginning of a file is that of a format other than text: an archive, a
/// spreadsheet, Parquet. The message names the wanted content as `accepted`.
void refuse_binary(std::string_view beginning, const std::filesystem::path& path,
                   std::string_view accepted);

}  // namespace rubato

struct gzFile_s;  // zlib's, so that zlib.h stays out of this header

namespace rubato::detail {

/// Reads a file from beginning to end, and decompresses it if its content is gzip; other content is
/// passed on unchanged. Bytes that follow a gzip stream and are not gzip are ignored, as by gzip.
class GzipFile {
 public:
  /// Throws Error if the file cannot be opened or is a folder; the message names the wanted content
  /// as `accepted` ("an IDX image file").
  GzipFile(const std::filesystem::path& path, std::string accepted);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Fills `bytes` and returns their number: fewer than asked for only at the end of the file.
  /// Throws Error on a read error and on a gzip stream that is cut off or fails its checksum; the
  /// checksum is verified only once a read has reached the end.
  [[nodiscard]] std::size_t read(std::span<std::uint8_t> bytes);

 private:
  class Unpacker;
  [[nodiscard]] std::size_t read_by_zlib(std::span<std::uint8_t> bytes);
  [[noreturn]] void fail() const;

  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::filesystem::path path_;
  std::string accepted_;
  std::unique_ptr<gzFile_s, Close> file_;
  // Null once zlib reads the file.
  std::unique_ptr<Unpacker> unpacker_;
  std::uint64_t given_ = 0;
};

}  // namespace rubato::detail
