#include "trial.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/train/training_error.hpp>

#include "gather.hpp"

namespace rubato {

namespace {

// Integers, but not bool: of these a loss may take classes.
bool may_be_classes(const at::Tensor& targets) {
  return c10::isIntegralType(targets.scalar_type(), /*includeBool=*/false) && targets.numel() > 0;
}

std::string shape_of(const at::Tensor& all, std::int64_t samples) {
  std::vector<std::int64_t> sizes = all.sizes().vec();
  sizes.front() = samples;
  return fmt::format("{} [{}]", c10::toString(all.scalar_type()), fmt::join(sizes, ", "));
}

}  // namespace

std::vector<std::vector<std::int64_t>> trial_minibatches(const TensorDataset& dataset,
                                                         std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(size, dataset.size())));
  std::iota(samples.begin(), samples.end(), 0);
  if (!may_be_classes(dataset.targets)) return {samples};
  const std::int64_t of_sample = dataset.targets.numel() / dataset.size();
  const auto smallest = dataset.targets.argmin().item<std::int64_t>() / of_sample;
  const auto largest = dataset.targets.argmax().item<std::int64_t>() / of_sample;
  if (samples.size() == 1) return {{smallest}, {largest}};
  samples[0] = smallest;
  samples[1] = largest;
  return {samples};
}

std::string place_of_trial(const TensorDataset& dataset, std::int64_t size, std::string_view name) {
  const std::int64_t samples = std::min(size, dataset.size());
  std::string range;
  if (may_be_classes(dataset.targets)) {
    range = fmt::format(" from {} to {}", dataset.targets.min().item<std::int64_t>(),
                        dataset.targets.max().item<std::int64_t>());
  }
  return fmt::format("a minibatch of the {}, tried before training (inputs {}, targets {}{})", name,
                     shape_of(dataset.inputs, samples), shape_of(dataset.targets, samples), range);
}

void try_evaluation(Replica& replica, const Loss& loss, const TensorDataset& dataset,
                    std::int64_t size, std::string_view name) {
  const at::NoGradGuard no_grad;
  replica.set_training(false);
  try {
    for (const auto& samples : trial_minibatches(dataset, size)) {
      replica.load_buffers();
      const at::Tensor output = replica.forward(gather(dataset.inputs, samples));
      static_cast<void>(loss(output, gather(dataset.targets, samples)).item<double>());
    }
  } catch (...) {
    rethrow_with_place(Phase::evaluation, place_of_trial(dataset, size, name));
  }
}

}  // namespace rubato
