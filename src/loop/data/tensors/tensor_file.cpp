#include "tensor_file.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/memory.hpp"
#include "loop/data/files/mapped_file.hpp"
#include "loop/data/record_contents.hpp"
#include "numpy_array.hpp"
#include "saved_tensors.hpp"
#include "zip_records.hpp"

namespace rubato {

namespace {

using Arrays = std::map<std::string, NumberArray>;
using Records = std::map<std::string, ZipRecord>;

constexpr std::string_view kAccepted =
    "torch.save({'x': x, 'y': y}, FILE) or numpy.savez(FILE, x=x, y=y)";

// Negates an array of floating-point numbers, whose sign is the highest bit of the last byte.
NumberArray negated(NumberArray array, const std::string& name) {
  require_memory(static_cast<double>(array.bytes.size()), fmt::format("{}, negated, needs", name),
                 "a tensor that was saved as .resolve_neg() is not copied");
  auto copy = std::make_shared<std::string>(array.bytes);
  const std::size_t size = size_of(array.type);
  constexpr unsigned char kSign = 0x80;
  for (std::size_t last = size - 1; last < copy->size(); last += size) {
    (*copy)[last] = static_cast<char>(static_cast<unsigned char>((*copy)[last]) ^ kSign);
  }
  array.bytes = *copy;
  array.owner = std::move(copy);
  return array;
}

// Returns row-major views of the tensors that torch.save() wrote, or copies.
Arrays saved_by_torch(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source, const PickNames& pick) {
  Arrays arrays;
  // The tensors are read first: that refuses compressed ones, which may be of any size.
  const std::vector<SavedTensor> tensors = read_saved_tensors(records, source, kAccepted, pick);
  require_intact(records, source, kAccepted);
  for (const SavedTensor& tensor : tensors) {
    const std::size_t begin = static_cast<std::size_t>(tensor.offset) * size_of(tensor.type);
    const std::string name = fmt::format("{}: '{}'", source, tensor.name);
    NumberArray array = dense({.type = tensor.type,
                               .shape = tensor.shape,
                               .strides = tensor.strides,
                               .bytes = tensor.storage.substr(begin)},
                              file, name);
    if (tensor.is_negated) array = negated(std::move(array), name);
    arrays.insert_or_assign(tensor.name, std::move(array));
  }
  return arrays;
}

// Unpacks only the header if the array and its record have different sizes.
std::shared_ptr<const std::string> unpacked_npy(const ZipRecord& record, const std::string& name) {
  constexpr std::string_view kPacked = "numpy.savez_compressed(FILE, x=x, y=y)";
  const std::uint64_t size = npy_size(inflated_beginning(record, name, kPacked), name);
  if (size != record.size) {
    throw Error(fmt::format("{} has {} bytes by its header and claims {}; accepted: {}", name, size,
                            record.size, kPacked));
  }
  return inflated(record, name, kPacked);
}

Arrays saved_by_numpy(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source, const PickNames& pick) {
  constexpr std::string_view kNpy = ".npy";
  const auto key_of = [&](const std::string& file_name) {
    return file_name.substr(0, file_name.size() - (file_name.ends_with(kNpy) ? kNpy.size() : 0));
  };
  std::vector<std::string> names;
  for (const auto& [file_name, record] : records) names.push_back(key_of(file_name));
  const std::vector<std::string> wanted = pick ? pick(names) : names;
  Arrays arrays;
  for (const auto& [file_name, record] : records) {
    const std::string key = key_of(file_name);
    const std::string name = fmt::format("{}: '{}'", source, key);
    if (key == file_name || std::ranges::find(wanted, key) == wanted.end()) {
      require_intact(record, name, kAccepted);
      continue;
    }
    if (record.deflated) {
      const auto bytes = unpacked_npy(record, name);
      arrays.insert_or_assign(key, parse_npy(*bytes, bytes, name));
    } else {
      require_intact(record, name, kAccepted);
      arrays.insert_or_assign(key, parse_npy(record.bytes, file, name));
    }
  }
  return arrays;
}

}  // namespace

std::map<std::string, NumberArray> read_tensor_file(const std::filesystem::path& path,
                                                    const PickNames& pick) {
  const auto file = MappedFile::open(path, kAccepted);
  const std::string source = path.string();
  refuse_old_torch_file(file->bytes(), source, kAccepted);
  const Records records = zip_directory(file->bytes(), source, kAccepted);
  if (records.contains("data.pkl")) return saved_by_torch(records, file, source, pick);
  return saved_by_numpy(records, file, source, pick);
}

}  // namespace rubato
