#include "trial.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/loop/objective.hpp>

#include "libtorch/torch/datasets/checked_batch.hpp"

namespace rubato {

namespace {

std::string shapes_of(const Tensors& tensors, std::int64_t samples) {
  std::vector<std::string> shapes;
  shapes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = samples;
    shapes.push_back(
        fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), fmt::join(sizes, ", ")));
  }
  return fmt::to_string(fmt::join(shapes, " and "));
}

// " from 0 to 9" where there is one tensor of integers, which may be classes.
std::string range_of(const Tensors& targets) {
  if (targets.size() != 1 || targets.front().numel() == 0 ||
      !c10::isIntegralType(targets.front().scalar_type(), /*includeBool=*/false)) {
    return {};
  }
  return fmt::format(" from {} to {}", targets.front().min().item<std::int64_t>(),
                     targets.front().max().item<std::int64_t>());
}

}  // namespace

std::vector<std::vector<std::int64_t>> trial_minibatches(const Dataset& dataset,
                                                         std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(size, dataset.size())));
  std::iota(samples.begin(), samples.end(), 0);
  const std::vector<std::int64_t> extremes = dataset.extremes();
  if (extremes.size() <= samples.size()) {
    std::copy(extremes.begin(), extremes.end(), samples.begin());
    return {samples};
  }
  // One after the other.
  std::vector<std::vector<std::int64_t>> minibatches;
  for (std::size_t begin = 0; begin < extremes.size(); begin += samples.size()) {
    const std::size_t count = std::min(samples.size(), extremes.size() - begin);
    std::copy_n(extremes.begin() + static_cast<std::ptrdiff_t>(begin), count, samples.begin());
    minibatches.push_back(samples);
  }
  return minibatches;
}

std::string place_of_trial(const Dataset& dataset, std::int64_t size, std::string_view name) {
  std::vector<std::int64_t> tried = dataset.extremes();
  if (tried.empty()) tried.push_back(0);
  try {
    const Batch batch = dataset.batch(tried);
    const std::int64_t samples = std::min(size, dataset.size());
    return fmt::format("a minibatch of the {}, tried before training (inputs {}, targets {}{})",
                       name, shapes_of(batch.inputs, samples), shapes_of(batch.targets, samples),
                       range_of(batch.targets));
  } catch (const std::exception&) {
    // It is the data set that fails.
    return fmt::format("a minibatch of the {}, tried before training", name);
  }
}

void try_evaluation(Replica& replica, const Loss& loss, const Dataset& dataset, std::int64_t size,
                    std::string_view name) {
  const at::NoGradGuard no_grad;
  replica.set_training(false);
  try {
    for (const auto& samples : trial_minibatches(dataset, size)) {
      replica.load_buffers();
      const Batch batch =
          checked_batch(dataset.batch(samples), static_cast<std::int64_t>(samples.size()));
      const Tensors outputs = replica.forward(batch.inputs);
      const LossValue value = loss.value(outputs, batch.targets);
      static_cast<void>(value.weight_number());
      static_cast<void>(value.loss.item<double>());
    }
  } catch (...) {
    rethrow_with_place(Phase::evaluation, place_of_trial(dataset, size, name));
  }
}

}  // namespace rubato
