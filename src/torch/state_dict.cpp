#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/state/state_file.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/weights.hpp>

#include "data/pickle_value.hpp"
#include "data/zip_records.hpp"

namespace rubato {

namespace {

using Kind = PickleValue::Kind;

struct StorageType {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array<StorageType, 10> kStorageTypes{{{"torch.FloatStorage", at::kFloat},
                                                     {"torch.DoubleStorage", at::kDouble},
                                                     {"torch.HalfStorage", at::kHalf},
                                                     {"torch.BFloat16Storage", at::kBFloat16},
                                                     {"torch.LongStorage", at::kLong},
                                                     {"torch.IntStorage", at::kInt},
                                                     {"torch.ShortStorage", at::kShort},
                                                     {"torch.CharStorage", at::kChar},
                                                     {"torch.ByteStorage", at::kByte},
                                                     {"torch.BoolStorage", at::kBool}}};

// Makes tensors of what a pickle says of them. Checks all of it: sizes, steps and memory.
class Rebuilder {
 public:
  Rebuilder(const std::map<std::string, std::string_view>& records, const std::string& source)
      : records_(records), source_(source) {}

  at::Tensor tensor(const std::string& name, const PickleValue& value) {
    if (value.kind != Kind::call || value.items[0]->kind != Kind::global) {
      fail(name, "is no tensor");
    }
    const std::string& function = value.items[0]->text;
    const auto& arguments = value.items[1]->items;
    if (function == "torch._utils._rebuild_parameter" && !arguments.empty() &&
        arguments[0]->kind == Kind::call && !is_parameter(*arguments[0])) {
      return tensor(name, *arguments[0]);
    }
    if (function != "torch._utils._rebuild_tensor_v2" || arguments.size() < 4) {
      fail(name, "is no dense tensor");
    }
    return view(name, storage(name, *arguments[0]), *arguments[1], *arguments[2], *arguments[3]);
  }

 private:
  [[noreturn]] void fail(const std::string& name, std::string_view why) const {
    throw Error(
        fmt::format("{}: '{}' {}; accepted: a state_dict, as torch.save(model.state_dict(), "
                    "FILE) writes it",
                    source_, name, why));
  }

  // One in another would be a nesting without end.
  static bool is_parameter(const PickleValue& call) {
    return call.items[0]->text == "torch._utils._rebuild_parameter";
  }

  // One-dimensional.
  at::Tensor storage(const std::string& name, const PickleValue& value) {
    const bool persistent = value.kind == Kind::persistent && value.items[0]->kind == Kind::tuple;
    if (!persistent || value.items[0]->items.size() != 5) fail(name, "has no storage");
    const auto& id = value.items[0]->items;
    const auto* const type = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                          [&](const auto& row) { return row.name == id[1]->text; });
    if (type == kStorageTypes.end()) fail(name, "is of a type that no model is trained with");
    const auto record = records_.find("data/" + id[2]->text);
    if (record == records_.end()) fail(name, "has no record in the file");
    const auto [place, is_new] = storages_.try_emplace(id[2]->text);
    if (is_new) {
      const std::string_view bytes = record->second;
      const auto elements = static_cast<std::int64_t>(bytes.size() / c10::elementSize(type->type));
      place->second = at::empty({elements}, at::TensorOptions().dtype(type->type));
      if (elements > 0) {
        std::memcpy(place->second.data_ptr(), bytes.data(), place->second.nbytes());
      }
      // What is no 0 or 1 is no bool.
      if (type->type == at::kBool) place->second = place->second.view(at::kByte).ne(0);
    }
    if (place->second.scalar_type() != type->type) fail(name, "has a storage of two types");
    return place->second;
  }

  std::int64_t whole(const std::string& name, const PickleValue& value) const {
    if (value.kind != Kind::integer || value.integer < 0) fail(name, "has sizes that are none");
    return value.integer;
  }

  at::Tensor view(const std::string& name, const at::Tensor& storage, const PickleValue& offset,
                  const PickleValue& sizes, const PickleValue& strides) const {
    constexpr std::size_t kMostDimensions = 64;
    if (sizes.kind != Kind::tuple || strides.kind != Kind::tuple ||
        sizes.items.size() != strides.items.size() || sizes.items.size() > kMostDimensions) {
      fail(name, "has sizes that are none");
    }
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> steps;
    // The element behind the last, in numbers that cannot overflow.
    auto last = static_cast<long double>(whole(name, offset)) + 1;
    bool empty = false;
    // All steps may be 0, so that there are more of them than the file holds.
    constexpr long double kMostElements = 0x1p62L;
    long double elements = 1;
    for (std::size_t i = 0; i < sizes.items.size(); ++i) {
      shape.push_back(whole(name, *sizes.items[i]));
      elements *= static_cast<long double>(std::max<std::int64_t>(shape.back(), 1));
      if (elements > kMostElements) fail(name, "has sizes that are none");
      steps.push_back(whole(name, *strides.items[i]));
      empty = empty || shape.back() == 0;
      last += static_cast<long double>(shape.back() - 1) * static_cast<long double>(steps.back());
    }
    if (empty) return at::empty(shape, storage.options());
    if (last > static_cast<long double>(storage.numel())) {
      fail(name, "reaches beyond what the file holds of it");
    }
    return storage.as_strided(shape, steps, offset.integer);
  }

  const std::map<std::string, std::string_view>& records_;
  const std::string& source_;
  std::map<std::string, at::Tensor> storages_;
};

std::vector<NamedTensor> in_archive(std::string_view bytes, const std::string& source) {
  const auto records = zip_records(bytes, source);
  const auto pickle = records.find("data.pkl");
  if (pickle == records.end()) {
    throw Error(
        fmt::format("{}: there is no data.pkl in it; accepted: a state_dict, as "
                    "torch.save(model.state_dict(), FILE) writes it",
                    source));
  }
  if (records.contains("constants.pkl")) {
    throw Error(
        fmt::format("{}: it is TorchScript; accepted: a state_dict, as "
                    "torch.save(model.state_dict(), FILE) writes it",
                    source));
  }
  if (const auto order = records.find("byteorder");
      order != records.end() && order->second != "little") {
    throw Error(
        fmt::format("{}: its numbers are {}-endian; accepted: little", source, order->second));
  }
  const Pickle pickled(pickle->second, source);
  const PickleValue& dictionary = pickled.value();
  if (dictionary.kind != Kind::dict) {
    throw Error(
        fmt::format("{}: it holds no dictionary; accepted: a state_dict, as "
                    "torch.save(model.state_dict(), FILE) writes it",
                    source));
  }
  Rebuilder rebuilder(records, source);
  std::vector<NamedTensor> tensors;
  for (const auto& [key, value] : dictionary.entries) {
    tensors.push_back({key->text, rebuilder.tensor(key->text, *value)});
  }
  return tensors;
}

// "a, b and 7 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 20;
  const auto shown = std::min(names.size(), kMostNames);
  const std::string text = fmt::to_string(
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown == names.size()) return text;
  return fmt::format("{} and {} more", text, names.size() - shown);
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

}  // namespace

std::vector<NamedTensor> read_weights(std::string_view bytes, const std::string& source) {
  constexpr std::string_view kZip = "PK";
  // Python's number for the format of before 1.6, in a pickle of its own.
  constexpr std::string_view kOldFormat("\x80\x02\x8a\x0a\x6c\xfc", 6);
  if (bytes.starts_with(kZip)) return in_archive(bytes, source);
  if (bytes.starts_with(kOldFormat)) {
    throw Error(
        fmt::format("{}: it is in the format of PyTorch before 1.6; accepted: a state_dict that a "
                    "newer one has written by torch.save()",
                    source));
  }
  const State state = parse_state(bytes, source);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, array] : state.arrays()) {
    // Only read.
    auto* const data = const_cast<char*>(array.bytes.data());
    const NamedTensor seen =
        tensor_of({.name = name, .type = array.type, .shape = array.shape, .data = data});
    tensors.push_back({name, seen.tensor.clone()});
  }
  return tensors;
}

void load_weights(const Model& model, std::span<const NamedTensor> weights,
                  const std::string& source) {
  std::map<std::string, at::Tensor> given;
  for (const NamedTensor& named : weights) given[named.name] = named.tensor;
  std::vector<std::string> missing;
  std::vector<std::string> shaped;
  const at::NoGradGuard no_grad;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto* tensors : {&model.parameters, &model.buffers}) {
    for (const NamedTensor& named : *tensors) {
      if (!named.tensor.defined()) continue;
      const auto found = given.find(named.name);
      if (found == given.end()) {
        missing.push_back(named.name);
        continue;
      }
      if (found->second.sizes() != named.tensor.sizes()) {
        shaped.push_back(fmt::format("{} ({}, not {})", named.name, shape_of(found->second),
                                     shape_of(named.tensor)));
      }
      copies.emplace_back(named.tensor, found->second);
      given.erase(found);
    }
  }
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : given) unknown.push_back(name);
  std::vector<std::string> problems;
  if (!missing.empty()) problems.push_back("it lacks " + some_of(missing));
  if (!unknown.empty()) problems.push_back("the model has no " + some_of(unknown));
  if (!shaped.empty()) problems.push_back("of other shapes are " + some_of(shaped));
  if (!problems.empty()) {
    throw Error(
        fmt::format("{}: {}; accepted: weights of this model", source, fmt::join(problems, "; ")));
  }
  for (auto& [to, from] : copies) to.copy_(from);
}

}  // namespace rubato
