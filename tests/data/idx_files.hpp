#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include <rubato/loop/images.hpp>

#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

using Bytes = std::vector<std::uint8_t>;

/// An IDX file as bytes: the magic and the dimensions as big-endian 32-bit words, then the data.
inline Bytes idx_bytes(std::initializer_list<std::uint32_t> header, const Bytes& data) {
  Bytes bytes;
  for (const std::uint32_t word : header) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::uint8_t>(word >> shift & 0xffU));
    }
  }
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

/// `count` images of `height` x `width` pixels with the values 0, 1, 2, ...
inline Bytes image_bytes(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  Bytes data;
  for (std::uint32_t i = 0; i < count * height * width; ++i) {
    data.push_back(static_cast<std::uint8_t>(i & 0xffU));
  }
  return idx_bytes({0x803, count, height, width}, data);
}

/// `count` labels 0, 1, ..., 9, 0, ...
inline Bytes label_bytes(std::uint32_t count) {
  Bytes data;
  for (std::uint32_t i = 0; i < count; ++i) data.push_back(static_cast<std::uint8_t>(i % 10));
  return idx_bytes({0x801, count}, data);
}

/// `bytes` as one gzip stream.
inline Bytes gzipped(const Bytes& bytes) {
  constexpr int kGzipFormat = 16 + MAX_WBITS;
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib: deflateInit2");
  }
  Bytes packed(deflateBound(&stream, bytes.size()));
  Bytes input = bytes;  // zlib's pointer is not const
  stream.next_in = input.data();
  stream.avail_in = static_cast<unsigned>(input.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<unsigned>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("zlib: deflate");
  return packed;
}

/// A test with a folder of its own for IDX files, removed when the test ends.
class IdxFiles : public testing::Test {
 protected:
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const {
    return folder() / name;
  }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    return folder_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  /// The message with which the two files, in the folder, are refused.
  [[nodiscard]] std::string error(const std::string& images, const std::string& labels) const {
    return error_of([&] { return read_idx(path(images), path(labels)); });
  }

 private:
  TempFolder folder_;
};

}  // namespace rubato::test
