// Tensors, the arrays of states and data sets meet in this file. Conversions between NamedTensor
// and NamedArray share the memory, and kTypes is the only table that pairs libtorch's element types
// with those of states. A data set in memory copies the rows of a batch by index_select(), so
// models may write to their inputs. Its fingerprint is a hash of all bytes, computed when it is
// first asked for and kept without a lock (Dataset::fingerprint() is not called by two threads at
// once).

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/libtorch/dataset.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "libtorch/torch/objective/torch_objective.hpp"

namespace rubato {

namespace {

constexpr std::array<std::pair<at::ScalarType, ElementType>, 10> kTypes{
    {{at::kDouble, ElementType::f64},
     {at::kFloat, ElementType::f32},
     {at::kHalf, ElementType::f16},
     {at::kBFloat16, ElementType::bf16},
     {at::kLong, ElementType::i64},
     {at::kInt, ElementType::i32},
     {at::kShort, ElementType::i16},
     {at::kChar, ElementType::i8},
     {at::kByte, ElementType::u8},
     {at::kBool, ElementType::boolean}}};

}  // namespace

NamedArray array_of(const NamedTensor& named) {
  const at::Tensor plain = named.tensor.detach();
  const at::Tensor tensor = plain.is_complex() ? at::view_as_real(plain) : plain;
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& types) {
    return types.first == tensor.scalar_type();
  });
  if (found == kTypes.end()) {
    throw_error("'{}' is {}, which no checkpoint can hold; accepted: real and complex types",
                named.name, c10::toString(tensor.scalar_type()));
  }
  if (!tensor.is_contiguous()) {
    throw_error("'{}' is not dense; accepted: a contiguous tensor", named.name);
  }
  return {.name = named.name,
          .type = found->second,
          .shape = tensor.sizes().vec(),
          .data = tensor.data_ptr()};
}

std::vector<NamedArray> arrays_of(std::span<const NamedTensor> tensors) {
  return vector_of(tensors, [](const NamedTensor& named) { return array_of(named); });
}

NamedTensor tensor_of(const NamedArray& array) {
  const auto* const found = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const auto& types) { return types.second == array.type; });
  return {array.name, at::from_blob(array.data, array.shape, found->first)};
}

std::vector<NamedTensor> tensors_of(std::span<const NamedArray> arrays) {
  return vector_of(arrays, [](const NamedArray& array) { return tensor_of(array); });
}

std::vector<TrainedArray> trained_arrays(const SharedState& state) {
  const std::vector<std::size_t> ends = state.parameter_layout().ends();
  std::vector<TrainedArray> trained;
  for (const NamedTensor& named : state.trained()) {
    trained.push_back({.array = array_of(named), .end = ends[trained.size()]});
  }
  return trained;
}

namespace {

// A loss may take integers, but not bools, as classes.
bool may_be_classes(const at::Tensor& targets) {
  return c10::isIntegralType(targets.scalar_type(), /*includeBool=*/false) && targets.numel() > 0;
}

// A data set in memory, with one row for each sample in every tensor.
class InMemory final : public Dataset {
 public:
  InMemory(Tensors inputs, Tensors targets, std::string fingerprint)
      : inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        fingerprint_(std::move(fingerprint)) {}

  std::int64_t size() const override { return inputs_.front().size(0); }

  Batch batch(std::span<const std::int64_t> samples) const override {
    return {.inputs = rows(inputs_, samples), .targets = rows(targets_, samples)};
  }

  std::string fingerprint() const override {
    if (fingerprint_.empty()) fingerprint_ = hash_of(inputs_, targets_);
    return fingerprint_;
  }
  std::size_t sample_bytes() const override {
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : inputs_) bytes += tensor.nbytes();
    return bytes / static_cast<std::size_t>(size());
  }
  std::vector<std::int64_t> extremes() const override {
    std::vector<std::int64_t> samples;
    for (const at::Tensor& tensor : targets_) {
      if (!may_be_classes(tensor)) continue;
      const std::int64_t of_sample = tensor.numel() / tensor.size(0);
      samples.push_back(tensor.argmin().item<std::int64_t>() / of_sample);
      samples.push_back(tensor.argmax().item<std::int64_t>() / of_sample);
    }
    return samples;
  }

  // SHA-256 of type, shape and bytes of all tensors.
  static std::string hash_of(const Tensors& inputs, const Tensors& targets) {
    Sha256 sha;
    // The number of inputs is hashed, so that an input of one set and a target of another differ.
    if (inputs.size() != 1) sha.add(fmt::format("{} inputs\n", inputs.size()));
    for (const Tensors* tensors : {&inputs, &targets}) {
      for (const at::Tensor& tensor : *tensors) {
        sha.add(fmt::format("{} {}\n", c10::toString(tensor.scalar_type()),
                            fmt::join(tensor.sizes(), "x")));
        const at::Tensor dense = tensor.contiguous();
        sha.add(dense.data_ptr(), dense.nbytes());
      }
    }
    return sha.hex();
  }

 private:
  static Tensors rows(const Tensors& all, std::span<const std::int64_t> samples) {
    // from_blob() takes no pointer to const; index_select() only reads.
    auto* numbers =
        const_cast<std::int64_t*>(samples.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    const at::Tensor indices =
        at::from_blob(numbers, {static_cast<std::int64_t>(samples.size())}, at::kLong);
    Tensors selected;
    selected.reserve(all.size());
    for (const at::Tensor& tensor : all) selected.push_back(tensor.index_select(0, indices));
    return selected;
  }

  Tensors inputs_;
  Tensors targets_;
  // The fingerprint is computed when it is first needed.
  mutable std::string fingerprint_;
};

void require_samples(const at::Tensor& tensor, std::string_view name, const char* part) {
  if (!tensor.defined() || tensor.dim() == 0 || tensor.size(0) == 0) {
    throw_error("{}: {} hold no sample", name, part);
  }
  if (!tensor.device().is_cpu()) {
    throw_error("{}: {} are on {}; accepted: cpu", name, part, tensor.device().str());
  }
}

void require_valid(const Tensors& inputs, const Tensors& targets, std::string_view name) {
  if (inputs.empty()) throw_error("{}: there are no inputs", name);
  for (const at::Tensor& tensor : inputs) require_samples(tensor, name, "inputs");
  for (const at::Tensor& tensor : targets) require_samples(tensor, name, "targets");
  const std::int64_t samples = inputs.front().size(0);
  for (const at::Tensor& tensor : inputs) {
    if (tensor.size(0) == samples) continue;
    throw_error("{}: {} samples in one tensor of inputs and {} in another", name, samples,
                tensor.size(0));
  }
  for (const at::Tensor& tensor : targets) {
    if (tensor.size(0) == samples) continue;
    throw_error("{}: {} inputs but {} targets; there must be one target for each input", name,
                samples, tensor.size(0));
  }
}

}  // namespace

Batch Dataset::range(std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  return batch(samples);
}

void require_valid(const TensorDataset& dataset, std::string_view name) {
  require_valid(Tensors{dataset.inputs}, Tensors{dataset.targets}, name);
}

std::shared_ptr<const Dataset> make_dataset(TensorDataset dataset) {
  require_valid(dataset, "the data");
  return std::make_shared<InMemory>(Tensors{std::move(dataset.inputs)},
                                    Tensors{std::move(dataset.targets)},
                                    std::move(dataset.fingerprint));
}

std::shared_ptr<const Dataset> make_dataset(Tensors inputs, Tensors targets) {
  require_valid(inputs, targets, "the data");
  return std::make_shared<InMemory>(std::move(inputs), std::move(targets), std::string());
}

TensorDataset to_tensors(const ImageSet& images, const PixelStatistics& statistics) {
  const auto normalised = normalised_pixels(statistics);
  TensorDataset dataset;
  dataset.inputs = at::empty({images.count, 1, images.height, images.width}, at::kFloat);
  float* input = dataset.inputs.data_ptr<float>();
  for (std::size_t i = 0; i < images.pixels.size(); ++i) input[i] = normalised[images.pixels[i]];
  dataset.targets = at::empty({images.count}, at::kLong);
  auto* target = dataset.targets.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < images.labels.size(); ++i) target[i] = images.labels[i];
  return dataset;
}

}  // namespace rubato
