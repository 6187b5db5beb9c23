#include "tensor_file.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

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

// A row-major view of what torch.save() wrote, or a copy.
Arrays saved_by_torch(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source) {
  Arrays arrays;
  // What it lists is looked at first: that refuses packed tensors, which may be any size.
  const std::vector<SavedTensor> tensors = read_saved_tensors(records, source, kAccepted);
  require_intact(records, source, kAccepted);
  for (const SavedTensor& tensor : tensors) {
    const std::size_t begin = static_cast<std::size_t>(tensor.offset) * size_of(tensor.type);
    arrays.insert_or_assign(tensor.name, dense({.type = tensor.type,
                                                .shape = tensor.shape,
                                                .strides = tensor.strides,
                                                .bytes = tensor.storage.substr(begin)},
                                               file, fmt::format("{}: '{}'", source, tensor.name)));
  }
  return arrays;
}

// Nothing but the header is unpacked where the array and its record do not have the same size.
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
                      const std::string& source) {
  constexpr std::string_view kNpy = ".npy";
  Arrays arrays;
  for (const auto& [file_name, record] : records) {
    if (!file_name.ends_with(kNpy)) {
      require_intact(record, fmt::format("{}: '{}'", source, file_name), kAccepted);
      continue;
    }
    const std::string key = file_name.substr(0, file_name.size() - kNpy.size());
    const std::string name = fmt::format("{}: '{}'", source, key);
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

std::map<std::string, NumberArray> read_tensor_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, kAccepted);
  const std::string source = path.string();
  refuse_old_torch_file(file->bytes(), source, kAccepted);
  const Records records = zip_directory(file->bytes(), source, kAccepted);
  if (records.contains("data.pkl")) return saved_by_torch(records, file, source);
  return saved_by_numpy(records, file, source);
}

}  // namespace rubato
