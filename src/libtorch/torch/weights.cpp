// Weights are written in the format of torch.save(), a ZIP archive of a pickled dictionary and a
// record for each tensor, as a stream. Reading never executes the pickle: read_saved_tensors()
// interprets it and yields the names, shapes and places of tensors in the file, and the checksums
// of the records are verified before Storages copies the numbers. Tensors that shared a storage in
// the file share one again. Safetensors files are read by the parser of states. load_weights()
// compares all names and shapes before it changes the model.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/Dict.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/safetensors.hpp"
#include "libtorch/model/archive.hpp"
#include "loop/data/tensors/saved_tensors.hpp"
#include "loop/data/tensors/zip_archive.hpp"

namespace rubato {

std::string pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers) {
  std::string bytes;
  stream_pickled_weights(parameters, buffers, [&bytes](std::string_view next) { bytes += next; });
  return bytes;
}

// The format is that of torch::jit::pickle_save(), which builds it in one piece, and of Python's
// torch.save().
void stream_pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers, const ByteSink& sink) {
  c10::Dict<std::string, at::Tensor> dictionary;
  for (const auto tensors : {parameters, buffers}) {
    for (const NamedTensor& named : tensors) {
      dictionary.insert(named.name, with_its_own_bytes(named.tensor));
    }
  }
  std::vector<char> pickle;
  // Tags of types are left out, because torch.load() takes them for code since PyTorch 2.6.
  torch::jit::Pickler pickler(
      [&pickle](const char* bytes, std::size_t size) {
        pickle.insert(pickle.end(), bytes, bytes + size);
      },
      nullptr, nullptr, nullptr, nullptr, false);
  pickler.protocol();
  pickler.pushIValue(dictionary);
  pickler.stop();
  ArchiveSink archive(sink);
  {
    caffe2::serialize::PyTorchStreamWriter writer(archive.function());
    const auto& tensors = pickler.tensorData();
    torch::jit::writeArchiveAndTensors("data", pickle.data(), pickle.size(),
                                       {tensors.begin(), tensors.end()}, writer);
    writer.writeEndOfFile();
  }
  archive.rethrow();
}

namespace {

constexpr std::string_view kAccepted =
    "a state_dict, as torch.save(model.state_dict(), FILE) or safetensors.torch.save_file() writes "
    "it";

// A copy of numbers in row-major order.
at::Tensor copy_of(ElementType type, const std::vector<std::int64_t>& shape, const char* numbers) {
  // The numbers are only read.
  auto* const data = const_cast<char*>(numbers);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return tensor_of({.name = {}, .type = type, .shape = shape, .data = data}).tensor.clone();
}

// Gives tensors memory of their own; those that shared a storage still share one.
class Storages {
 public:
  at::Tensor tensor(const SavedTensor& saved) {
    const at::Tensor& storage = storage_of(saved);
    const bool empty = std::ranges::find(saved.shape, 0) != saved.shape.end();
    if (empty) return at::empty(saved.shape, storage.options());
    const at::Tensor tensor = storage.as_strided(saved.shape, saved.strides, saved.offset);
    return saved.is_negated ? tensor.neg() : tensor;
  }

 private:
  // Returns the storage as a one-dimensional tensor.
  const at::Tensor& storage_of(const SavedTensor& saved) {
    const auto [place, is_new] = storages_.try_emplace({saved.storage.data(), saved.type});
    if (is_new) {
      const auto elements = saved.storage.size() / size_of(saved.type);
      place->second =
          copy_of(saved.type, {static_cast<std::int64_t>(elements)}, saved.storage.data());
      // Bytes other than 0 and 1 are not valid bools.
      if (saved.type == ElementType::boolean) {
        place->second = place->second.view(at::kByte).ne(0);
      }
    }
    return place->second;
  }

  std::map<std::pair<const char*, ElementType>, at::Tensor> storages_;
};

std::vector<NamedTensor> in_archive(std::string_view bytes, const std::string& source) {
  const auto records = zip_directory(bytes, source, kAccepted);
  if (!records.contains("data.pkl")) {
    throw_error("{}: there is no data.pkl in it; accepted: {}", source, kAccepted);
  }
  const std::vector<SavedTensor> listed = read_saved_tensors(records, source, kAccepted);
  require_intact(records, source, kAccepted);
  Storages storages;
  return vector_of(listed, [&](const SavedTensor& saved) {
    return NamedTensor{saved.name, storages.tensor(saved)};
  });
}

// Names in a message.
constexpr std::size_t kMostNames = 20;

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

}  // namespace

std::vector<NamedTensor> read_weights(std::string_view bytes, const std::string& source) {
  constexpr std::string_view kZip = "PK";
  if (bytes.starts_with(kZip)) return in_archive(bytes, source);
  refuse_old_torch_file(bytes, source, kAccepted);
  const State state = parse_arrays(bytes, source);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, array] : state.arrays()) {
    at::Tensor tensor = copy_of(array.type, array.shape, array.bytes.data());
    // Bytes other than 0 and 1 are not valid bools.
    if (array.type == ElementType::boolean) tensor = tensor.view(at::kByte).ne(0);
    tensors.push_back({name, tensor});
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
  const auto unknown = vector_of(given, [](const auto& named) { return named.first; });
  std::vector<std::string> problems;
  if (!missing.empty()) problems.push_back("it lacks " + first_names(missing, kMostNames));
  if (!unknown.empty()) problems.push_back("the model has no " + first_names(unknown, kMostNames));
  if (!shaped.empty()) problems.push_back("shapes differ in " + first_names(shaped, kMostNames));
  if (!problems.empty()) {
    throw_error("{}: {}; accepted: weights of this model", source, fmt::join(problems, "; "));
  }
  for (auto& [to, from] : copies) to.copy_(from);
}

}  // namespace rubato
