#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

namespace rubato::test {

/// The lowest bytes of a number, little-endian.
inline std::string little_endian(std::uint64_t number, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFFU);
  return bytes;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  // An empty vector may have no memory.
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

using Record = std::pair<std::string, std::string>;

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib: deflateInit2");
  }
  std::string input = bytes;  // zlib's pointer is not const
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("zlib: deflate");
  return packed;
}

/// A zip archive.
inline std::string zip_of(const std::vector<Record>& records, bool packed = false) {
  std::string archive;
  std::string directory;
  for (const auto& [name, bytes] : records) {
    const std::string stored = packed ? deflated(bytes) : bytes;
    const std::string sizes = little_endian(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                                  static_cast<uInt>(bytes.size())),
                                            4) +
                              little_endian(stored.size(), 4) + little_endian(bytes.size(), 4) +
                              little_endian(name.size(), 2);
    const std::string method = little_endian(packed ? 8 : 0, 2);
    const std::size_t local = archive.size();
    const std::string time(4, '\0');
    for (const std::string& part :
         {std::string("PK\3\4"), little_endian(20, 2), little_endian(0, 2), method, time, sizes,
          little_endian(0, 2), name, stored}) {
      archive += part;
    }
    for (const std::string& part :
         {std::string("PK\1\2"), little_endian(20, 4), little_endian(0, 2), method, time, sizes,
          std::string(12, '\0'), little_endian(local, 4), name}) {
      directory += part;
    }
  }
  const std::size_t begin = archive.size();
  return archive + directory + "PK\5\6" + std::string(4, '\0') + little_endian(records.size(), 2) +
         little_endian(records.size(), 2) + little_endian(directory.size(), 4) +
         little_endian(begin, 4) + std::string(2, '\0');
}

/// A .npy file.
template <class T>
std::string npy_of(const std::string& type, const std::vector<std::int64_t>& shape,
                   const std::vector<T>& values, bool column_major = false) {
  const std::string header = fmt::format(
      "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{}), }}\n", type,
      column_major ? "True" : "False", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  return std::string("\x93NUMPY\1\0", 8) + little_endian(header.size(), 2) + header +
         bytes_of(values);
}

/// A tensor in a pickle, as torch.save() writes it.
struct PickledTensor {
  std::string name;
  /// "Float".
  std::string storage;
  std::string record;
  std::uint8_t offset = 0;
  std::vector<std::uint8_t> shape{};
  std::vector<std::uint8_t> strides{};
  /// Of the dictionary of metadata that PyTorch 2 adds: names of what is true. Empty is without
  /// one.
  std::vector<std::string> metadata{};
};

/// The records of a file of torch.save({...}).
inline std::vector<Record> torch_records(const std::vector<PickledTensor>& tensors,
                                         const std::vector<Record>& storages) {
  const auto text = [](const std::string& value) {
    return 'X' + little_endian(value.size(), 4) + value;
  };
  const auto number = [](std::uint8_t value) { return std::string{'K', static_cast<char>(value)}; };
  const auto numbers = [&](const std::vector<std::uint8_t>& values) {
    std::string tuple = "(";
    for (const std::uint8_t value : values) tuple += number(value);
    return tuple + 't';
  };
  std::string pickle = "\x80\2}(";
  for (const PickledTensor& tensor : tensors) {
    pickle += text(tensor.name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
              "ctorch\n" + tensor.storage + "Storage\n" + text(tensor.record) + text("cpu") +
              number(1) + "tQ" + number(tensor.offset) + numbers(tensor.shape) +
              numbers(tensor.strides) + "\x89" + "ccollections\nOrderedDict\n)R";
    if (!tensor.metadata.empty()) {
      pickle += "}(";
      for (const std::string& name : tensor.metadata) pickle += text(name) + "\x88";
      pickle += 'u';
    }
    pickle += "tR";
  }
  std::vector<Record> records{{"data/data.pkl", pickle + "u."}};
  for (const auto& [name, bytes] : storages) records.emplace_back("data/data/" + name, bytes);
  return records;
}

}  // namespace rubato::test
