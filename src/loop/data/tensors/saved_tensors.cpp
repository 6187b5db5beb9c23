// torch.save() writes a zip archive: data.pkl is the pickle of the dictionary, in which a tensor is
// a call of _rebuild_tensor_v2() with a storage, an offset, a shape and strides, and data/N has the
// bytes of storage N. SavedTensorReader computes what such a call would return, without making it;
// the type of the numbers comes from the class of the storage. numpy.savez() writes an archive,
// too, with one .npy file for each array. In both formats read_tensor_file() verifies the checksums
// of all records, also of those that nobody asked for, so a damaged file is refused as a whole.

#include "saved_tensors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/data/input_file.hpp"
#include "loop/data/sample_set.hpp"
#include "number_array.hpp"
#include "pickle_value.hpp"
#include "zip_archive.hpp"

namespace rubato {

namespace {

using Kind = PickleValue::Kind;

struct StorageType {
  std::string_view name;
  ElementType type;
};
constexpr std::array<StorageType, 10> kStorageTypes{{{"torch.FloatStorage", ElementType::f32},
                                                     {"torch.DoubleStorage", ElementType::f64},
                                                     {"torch.HalfStorage", ElementType::f16},
                                                     {"torch.BFloat16Storage", ElementType::bf16},
                                                     {"torch.LongStorage", ElementType::i64},
                                                     {"torch.IntStorage", ElementType::i32},
                                                     {"torch.ShortStorage", ElementType::i16},
                                                     {"torch.CharStorage", ElementType::i8},
                                                     {"torch.ByteStorage", ElementType::u8},
                                                     {"torch.BoolStorage", ElementType::boolean}}};

constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2";

// Computes the tensor that a call in a pickle would make from a storage.
class SavedTensorReader {
 public:
  SavedTensorReader(const std::map<std::string, ZipRecord>& records, const std::string& source,
                    std::string_view accepted)
      : records_(records), source_(source), accepted_(accepted) {}

  [[nodiscard]] SavedTensor read(const std::string& name, const PickleValue& value) const {
    const PickleValue& call = without_parameter(value);
    if (!calls_global(call)) fail(name, "is not a tensor");
    const auto& arguments = call.items[1]->items;
    if (call.items[0]->text != kTensor || arguments.size() < 4) fail(name, "is not a dense tensor");
    SavedTensor tensor{.name = name,
                       .offset = number(name, *arguments[1]),
                       .shape = numbers(name, *arguments[2]),
                       .strides = numbers(name, *arguments[3])};
    read_storage(*arguments[0], tensor);
    require_inside(tensor);
    constexpr std::size_t kMetadata = 6;
    if (arguments.size() > kMetadata + 1) fail(name, "is not a dense tensor");
    if (arguments.size() > kMetadata) read_metadata(*arguments[kMetadata], tensor);
    return tensor;
  }

 private:
  [[noreturn]] void fail(const std::string& name, std::string_view why) const {
    throw_error("{}: '{}' {}; accepted: {}", source_, name, why, accepted_);
  }

  static bool calls_global(const PickleValue& value) {
    return value.kind == Kind::call && value.items[0]->kind == Kind::global;
  }

  // Returns the tensor inside a parameter.
  static const PickleValue& without_parameter(const PickleValue& value) {
    const bool is_parameter =
        calls_global(value) && value.items[0]->text == kParameter && !value.items[1]->items.empty();
    return is_parameter ? *value.items[1]->items[0] : value;
  }

  void read_storage(const PickleValue& value, SavedTensor& tensor) const {
    const bool persistent = value.kind == Kind::persistent && value.items[0]->kind == Kind::tuple;
    if (!persistent || value.items[0]->items.size() != 5) fail(tensor.name, "has no storage");
    const auto& id = value.items[0]->items;
    const auto* const row = std::ranges::find(kStorageTypes, id[1]->text, &StorageType::name);
    if (row == kStorageTypes.end()) {
      fail(tensor.name, "is of a type other than real numbers, whole numbers and bool");
    }
    tensor.type = row->type;
    const auto record = records_.find("data/" + id[2]->text);
    if (record == records_.end()) fail(tensor.name, "has no record in the file");
    if (record->second.deflated) fail(tensor.name, "is compressed");
    tensor.storage = record->second.bytes;
  }

  // PyTorch 2 marks views that are computed on reading.
  void read_metadata(const PickleValue& value, SavedTensor& tensor) const {
    if (value.kind != Kind::dict && value.kind != Kind::none)
      fail(tensor.name, "has invalid metadata");
    for (const auto& [key, flag] : value.entries) {
      if (flag->kind == Kind::boolean && flag->integer == 0) continue;
      const bool is_known =
          key->text == "neg" && flag->kind == Kind::boolean && is_real(tensor.type);
      if (!is_known) {
        fail(tensor.name, fmt::format("has metadata '{}', which change its numbers", key->text));
      }
      tensor.is_negated = true;
    }
  }

  void require_inside(const SavedTensor& tensor) const {
    std::uint64_t elements = 0;
    if (tensor.shape.size() != tensor.strides.size() || !count_elements(tensor.shape, elements)) {
      fail(tensor.name, "has invalid sizes");
    }
    const std::size_t held = tensor.storage.size() / size_of(tensor.type);
    const auto offset = static_cast<long double>(tensor.offset);
    const long double end = elements == 0 ? 0 : end_of_strided(tensor.shape, tensor.strides);
    if (offset + end > static_cast<long double>(held)) {
      fail(tensor.name, "reaches beyond its data in the file");
    }
  }

  [[nodiscard]] std::int64_t number(const std::string& name, const PickleValue& value) const {
    if (value.kind != Kind::integer || value.integer < 0) fail(name, "has invalid sizes");
    return value.integer;
  }
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& name,
                                                  const PickleValue& value) const {
    constexpr std::size_t kMostDimensions = 64;
    if (value.kind != Kind::tuple || value.items.size() > kMostDimensions) {
      fail(name, "has invalid sizes");
    }
    return vector_of(value.items, [&](const PickleValue* item) { return number(name, *item); });
  }

  const std::map<std::string, ZipRecord>& records_;
  const std::string& source_;
  std::string_view accepted_;
};

}  // namespace

std::vector<SavedTensor> read_saved_tensors(const std::map<std::string, ZipRecord>& records,
                                            const std::string& source, std::string_view accepted,
                                            const PickNames& pick) {
  const auto fail = [&](const std::string& why) {
    throw_error("{}: {}; accepted: {}", source, why, accepted);
  };
  if (records.contains("constants.pkl")) fail("it is TorchScript");
  if (const auto order = records.find("byteorder");
      order != records.end() && order->second.bytes != "little") {
    fail(fmt::format("its numbers are {}-endian", order->second.bytes));
  }
  const ZipRecord& pickle = records.at("data.pkl");
  if (pickle.deflated) fail("its data.pkl is compressed");
  const Pickle pickled(pickle.bytes, source, accepted);
  if (pickled.value().kind != Kind::dict) fail("it holds no dictionary");
  const SavedTensorReader reader(records, source, accepted);
  std::vector<std::string> names;
  for (const auto& [key, value] : pickled.value().entries) {
    if (key->kind != Kind::text) fail("it holds a key that is not text");
    names.push_back(key->text);
  }
  const std::vector<std::string> wanted = pick ? pick(names) : names;
  std::vector<SavedTensor> tensors;
  for (const auto& [key, value] : pickled.value().entries) {
    if (std::ranges::find(wanted, key->text) == wanted.end()) continue;
    tensors.push_back(reader.read(key->text, *value));
  }
  return tensors;
}

void refuse_old_torch_file(std::string_view bytes, const std::string& source,
                           std::string_view accepted) {
  // Python's magic number of that format, in a separate pickle.
  constexpr std::string_view kOldFormat("\x80\x02\x8a\x0a\x6c\xfc", 6);
  if (!bytes.starts_with(kOldFormat)) return;
  throw_error("{}: it is in the format of PyTorch before 1.6; accepted: {}, by a newer PyTorch",
              source, accepted);
}

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
    throw_error("{} has {} bytes by its header and claims {}; accepted: {}", name, size,
                record.size, kPacked);
  }
  return inflated(record, name, kPacked);
}

Arrays saved_by_numpy(const Records& records, const std::shared_ptr<const MappedFile>& file,
                      const std::string& source, const PickNames& pick) {
  constexpr std::string_view kNpy = ".npy";
  const auto key_of = [&](const std::string& file_name) {
    return file_name.substr(0, file_name.size() - (file_name.ends_with(kNpy) ? kNpy.size() : 0));
  };
  const auto names = vector_of(records, [&](const auto& named) { return key_of(named.first); });
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
