// class_rows() and class_scores() bring outputs and targets of all accepted shapes into rows of
// scores and classes, the only form that metrics and losses of classes have to know. make_dataset()
// chooses how samples become tensors: inputs that lie in memory as they are needed become a tensor
// without a copy; others are converted once if they fit into the room that the caller grants, or
// else for each minibatch. SampleDataset does the conversions; any number of threads may ask it for
// batches, because it only reads the samples.

#include "sample_tensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

Batch checked_batch(Batch batch, std::int64_t samples) {
  if (batch.inputs.empty()) throw Error("the data set gave a batch without inputs");
  for (const Tensors* tensors : {&batch.inputs, &batch.targets}) {
    for (const at::Tensor& tensor : *tensors) {
      const bool rows = tensor.defined() && tensor.dim() > 0;
      if (!rows || tensor.size(0) != samples) {
        throw_error("the data set gave {} rows of {} for {} samples", rows ? tensor.size(0) : 0,
                    tensors == &batch.inputs ? "inputs" : "targets", samples);
      }
      if (!tensor.device().is_cpu()) {
        throw_error("the data set gave a tensor on {}; accepted: cpu", tensor.device().str());
      }
    }
  }
  return batch;
}

std::optional<ClassRows> class_rows(const at::Tensor& outputs, const at::Tensor& targets) {
  const std::int64_t things = targets.dim();
  if (targets.is_floating_point() || things < 1 || outputs.dim() != things + 1) {
    return std::nullopt;
  }
  const at::IntArrayRef shape = targets.sizes();
  if (outputs.sizes().slice(0, static_cast<std::size_t>(things)) == shape) {
    if (things == 1) return ClassRows{.outputs = outputs, .targets = targets};
    return ClassRows{.outputs = outputs.flatten(0, -2), .targets = targets.flatten()};
  }
  const bool behind_first =
      outputs.size(0) == shape[0] && outputs.sizes().slice(2) == shape.slice(1);
  if (!behind_first) return std::nullopt;
  return ClassRows{.outputs = outputs.movedim(1, -1).flatten(0, -2), .targets = targets.flatten()};
}

std::optional<ClassRows> class_scores(const at::Tensor& outputs, const at::Tensor& targets,
                                      double threshold) {
  if (targets.is_floating_point() || targets.dim() == 0 || outputs.numel() != targets.numel()) {
    return class_rows(outputs, targets);
  }
  // Several labels of a sample with as many outputs have no scores of classes.
  const bool one_of_sample = targets.numel() == targets.size(0);
  const bool one_each = outputs.dim() == targets.dim() + 1 && outputs.size(-1) == 1;
  if (!one_of_sample && !one_each) return std::nullopt;
  const at::Tensor above = outputs.reshape({-1, 1}) - threshold;
  return ClassRows{.outputs = at::cat({at::zeros_like(above), above}, 1),
                   .targets = targets.reshape({-1})};
}

at::Tensor rows_by_class(const at::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.movedim(1, -1).flatten(0, -2);
}

std::optional<ClassRows> most_probable(const at::Tensor& outputs, const at::Tensor& targets) {
  if (!targets.is_floating_point() || targets.dim() < 2 || outputs.sizes() != targets.sizes()) {
    return std::nullopt;
  }
  return ClassRows{.outputs = rows_by_class(outputs), .targets = rows_by_class(targets).argmax(1)};
}

namespace {

// A data set whose samples are converted on demand.
class SampleDataset final : public Dataset {
 public:
  SampleDataset(const DataSets& data, SampleSet set, SampleTensors tensors)
      : set_(std::move(set)),
        reader_(data),
        tensors_(std::move(tensors)),
        target_type_(data.classes > 0 ? at::kLong : tensors_.real_target_type) {}

  std::int64_t size() const override { return set_.size(); }

  Batch batch(std::span<const std::int64_t> samples) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    at::Tensor inputs = at::empty(with_samples(count, tensors_.input_shape), tensors_.input_type);
    fill(inputs, samples,
         [this](std::int64_t sample, auto* to) { reader_.read(set_.input(sample), to); });
    return {.inputs = {inputs}, .targets = {targets(samples)}};
  }

  at::Tensor targets(std::span<const std::int64_t> samples) const {
    const auto count = static_cast<std::int64_t>(samples.size());
    at::Tensor made = at::empty(with_samples(count, set_.targets.shape()), target_type_);
    fill(made, samples, [this](std::int64_t sample, auto* to) {
      read_numbers(set_.targets.type(), set_.target(sample), to);
    });
    return made;
  }

  // All inputs where they lie. Requires that they are in memory, in the type and layout that a
  // model takes.
  at::Tensor inputs_in_place() const {
    return at::from_blob(
        const_cast<char*>(set_.inputs.dense().data()),  // NOLINT: batches are copies
        with_samples(size(), tensors_.input_shape), [owner = set_.inputs.owner()](void*) {},
        tensors_.input_type);
  }

  std::string fingerprint() const override {
    if (fingerprint_.empty()) fingerprint_ = fingerprint_of(set_);
    return fingerprint_;
  }
  std::size_t sample_bytes() const override {
    return static_cast<std::size_t>(set_.inputs.elements()) * at::elementSize(tensors_.input_type);
  }
  // Bytes of all inputs and targets, as tensors.
  double all_bytes() const {
    const std::size_t of_targets =
        static_cast<std::size_t>(set_.targets.elements()) * at::elementSize(target_type_);
    return static_cast<double>(size()) * static_cast<double>(sample_bytes() + of_targets);
  }
  // Returns the samples with the smallest and with the largest class.
  std::vector<std::int64_t> extremes() const override {
    if (target_type_ != at::kLong) return {};
    std::vector<std::int64_t> classes(static_cast<std::size_t>(set_.targets.elements()));
    std::pair<std::int64_t, std::int64_t> smallest{0, 0};
    std::pair<std::int64_t, std::int64_t> largest{0, 0};
    for (std::int64_t i = 0; i < size(); ++i) {
      read_numbers(set_.targets.type(), set_.target(i), classes.data());
      const auto [least, most] = std::ranges::minmax(classes);
      if (i == 0 || least < smallest.first) smallest = {least, i};
      if (i == 0 || most > largest.first) largest = {most, i};
    }
    return {smallest.second, largest.second};
  }

 private:
  static std::vector<std::int64_t> with_samples(std::int64_t count,
                                                const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> all{count};
    all.insert(all.end(), shape.begin(), shape.end());
    return all;
  }

  // Fills one row for each sample, which read(sample, pointer) writes.
  template <class Read>
  static void fill(at::Tensor& tensor, std::span<const std::int64_t> samples, const Read& read) {
    const std::int64_t row = tensor.numel() / std::max<std::int64_t>(1, tensor.size(0));
    const auto fill_as = [&](auto* to) {
      for (const std::int64_t sample : samples) {
        read(sample, to);
        to += row;
      }
    };
    if (tensor.scalar_type() == at::kFloat) return fill_as(tensor.data_ptr<float>());
    if (tensor.scalar_type() == at::kDouble) return fill_as(tensor.data_ptr<double>());
    RUBATO_CHECK(tensor.scalar_type() == at::kLong, "samples become float, double or long");
    fill_as(tensor.data_ptr<std::int64_t>());
  }

  SampleSet set_;
  InputReader reader_;
  SampleTensors tensors_;
  at::ScalarType target_type_;
  // The fingerprint is computed when it is first needed.
  mutable std::string fingerprint_;
};

// True if a model takes the inputs as they lie in memory.
bool is_as_asked(const DataSets& data, const SampleSet& set, const SampleTensors& tensors) {
  const auto is_of = [&](ElementType type, at::ScalarType asked) {
    return set.inputs.type() == type && tensors.input_type == asked;
  };
  const bool right_type = is_of(ElementType::f32, at::kFloat) ||
                          is_of(ElementType::f64, at::kDouble) ||
                          is_of(ElementType::i64, at::kLong);
  const std::string_view bytes = set.inputs.dense();
  const auto misplaced = std::bit_cast<std::uintptr_t>(bytes.data()) % size_of(set.inputs.type());
  return data.in_memory && data.features.empty() && right_type && !set.chosen && !bytes.empty() &&
         misplaced == 0;
}

}  // namespace

std::shared_ptr<const Dataset> make_dataset(const DataSets& data, const SampleSet& set,
                                            SampleTensors tensors, double room) {
  const bool in_place = is_as_asked(data, set, tensors);
  auto samples = std::make_shared<SampleDataset>(data, set, std::move(tensors));
  if (in_place) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(set.size()));
    std::iota(all.begin(), all.end(), 0);
    return make_dataset(TensorDataset{.inputs = samples->inputs_in_place(),
                                      .targets = samples->targets(all),
                                      .fingerprint = fingerprint_of(set)});
  }
  if (samples->all_bytes() > room) return samples;
  Batch all = samples->range(0, samples->size());
  return make_dataset(TensorDataset{.inputs = std::move(all.inputs.front()),
                                    .targets = std::move(all.targets.front()),
                                    .fingerprint = fingerprint_of(set)});
}

}  // namespace rubato
