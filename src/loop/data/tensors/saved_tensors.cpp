#include "saved_tensors.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "loop/data/sample_set.hpp"
#include "number_array.hpp"
#include "pickle_value.hpp"

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
    throw Error(fmt::format("{}: '{}' {}; accepted: {}", source_, name, why, accepted_));
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
    std::vector<std::int64_t> numbers;
    for (const PickleValue* const item : value.items) numbers.push_back(number(name, *item));
    return numbers;
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
    throw Error(fmt::format("{}: {}; accepted: {}", source, why, accepted));
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
  throw Error(
      fmt::format("{}: it is in the format of PyTorch before 1.6; accepted: {}, by a newer PyTorch",
                  source, accepted));
}

}  // namespace rubato
