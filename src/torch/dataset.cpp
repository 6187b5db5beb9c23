#include <array>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/torch/dataset.hpp>

#include "state/sha256.hpp"

namespace rubato {

void require_valid(const TensorDataset& dataset, std::string_view name) {
  for (const at::Tensor* tensor : {&dataset.inputs, &dataset.targets}) {
    const char* part = tensor == &dataset.inputs ? "inputs" : "targets";
    if (!tensor->defined() || tensor->dim() == 0 || tensor->size(0) == 0) {
      throw Error(fmt::format("{}: {} hold no sample", name, part));
    }
    if (!tensor->device().is_cpu()) {
      throw Error(
          fmt::format("{}: {} are on {}; accepted: cpu", name, part, tensor->device().str()));
    }
  }
  if (dataset.inputs.size(0) != dataset.targets.size(0)) {
    throw Error(fmt::format("{}: {} inputs but {} targets; there must be one target for each input",
                            name, dataset.inputs.size(0), dataset.targets.size(0)));
  }
}

const std::string& fingerprint_of(TensorDataset& dataset) {
  if (!dataset.fingerprint.empty()) return dataset.fingerprint;
  Sha256 sha;
  for (const at::Tensor* tensor : {&dataset.inputs, &dataset.targets}) {
    sha.add(fmt::format("{} {}\n", c10::toString(tensor->scalar_type()),
                        fmt::join(tensor->sizes(), "x")));
    const at::Tensor dense = tensor->contiguous();
    sha.add(dense.data_ptr(), dense.nbytes());
  }
  dataset.fingerprint = sha.hex();
  return dataset.fingerprint;
}

TensorDataset to_tensors(const ImageSet& images, const PixelStatistics& statistics) {
  // A pixel has 256 values: normalise those, then look each pixel up.
  std::array<float, 256> normalised{};
  for (std::size_t value = 0; value < normalised.size(); ++value) {
    normalised[value] = static_cast<float>((static_cast<double>(value) / 255.0 - statistics.mean) /
                                           statistics.deviation);
  }
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
