#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/check.hpp"

namespace rubato {

std::vector<std::int64_t> random_permutation(std::int64_t n, std::uint64_t seed) {
  RUBATO_CHECK(n >= 0 && n <= kMaxDatasetSize,
               "torch.randperm draws permutations of this size in this way");
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(n));
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  // The remainder is not exactly uniform, but it is what torch.randperm computes.
  for (std::size_t i = 0; i + 1 < permutation.size(); ++i) {
    std::swap(permutation[i], permutation[i + generator() % (permutation.size() - i)]);
  }
  return permutation;
}

EpochSamples::EpochSamples(std::int64_t dataset_size, std::int64_t minibatch_size,
                           std::uint64_t seed, EpochIndex epoch)
    : samples_(random_permutation(dataset_size, seed + static_cast<std::uint64_t>(epoch.value()))),
      minibatch_size_(minibatch_size) {
  RUBATO_CHECK(minibatch_size >= 1, "a minibatch has at least one sample");
}

std::span<const std::int64_t> EpochSamples::minibatch(MinibatchIndex minibatch) const {
  const std::int64_t minibatches = static_cast<std::int64_t>(samples_.size()) / minibatch_size_;
  RUBATO_CHECK(minibatch.value() >= 0 && minibatch.value() < minibatches,
               "the minibatch is one of the epoch's");
  const auto size = static_cast<std::size_t>(minibatch_size_);
  return std::span(samples_).subspan(minibatch.offset() * size, size);
}

SampleOrder::SampleOrder(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed,
                         Sampler sampler)
    : dataset_size_(dataset_size),
      minibatch_size_(minibatch_size),
      seed_(seed),
      sampler_(std::move(sampler)) {
  RUBATO_CHECK(minibatch_size >= 1 && minibatch_size <= dataset_size,
               "the data have at least one minibatch");
  // Errors of a sampler are found before anything is trained.
  if (sampler_) samples_ = order_of(first_);
}

std::vector<std::int64_t> SampleOrder::order_of(EpochIndex epoch) const {
  if (!sampler_) {
    return random_permutation(dataset_size_, seed_ + static_cast<std::uint64_t>(epoch.value()));
  }
  std::vector<std::int64_t> order =
      sampler_.order({.epoch = epoch, .seed = seed_, .samples = dataset_size_});
  if (static_cast<std::int64_t>(order.size()) != dataset_size_) {
    throw Error(
        fmt::format("sampler {} gave {} indices for epoch {}; accepted: as many as there are "
                    "samples, {}",
                    sampler_.name, order.size(), epoch.value() + 1, dataset_size_));
  }
  for (const std::int64_t sample : order) {
    if (sample >= 0 && sample < dataset_size_) continue;
    throw Error(fmt::format("sampler {} gave the index {} for epoch {}; accepted: 0 to {}",
                            sampler_.name, sample, epoch.value() + 1, dataset_size_ - 1));
  }
  return order;
}

void SampleOrder::prepare(EpochIndex epoch, const StepPlan& step) {
  const auto size = static_cast<std::size_t>(dataset_size_);
  const std::int64_t past = epoch.value() - first_.value();
  if (past < 0 || past >= static_cast<std::int64_t>(samples_.size() / size)) {
    samples_.clear();
  } else {
    samples_.erase(samples_.begin(), samples_.begin() + past * dataset_size_);
  }
  first_ = epoch;
  const std::int64_t needed = step.first_sample(minibatch_size_) + step.batch_size;
  while (samples_.empty() || static_cast<std::int64_t>(samples_.size()) < needed) {
    const std::vector<std::int64_t> order =
        order_of(EpochIndex{epoch.value() + static_cast<std::int64_t>(samples_.size() / size)});
    samples_.insert(samples_.end(), order.begin(), order.end());
  }
}

std::span<const std::int64_t> SampleOrder::minibatch(const StepPlan& step,
                                                     MinibatchIndex minibatch) const {
  const std::int64_t begin = step.shift + minibatch.value() * minibatch_size_;
  const std::int64_t end =
      std::min(begin + minibatch_size_, step.first_sample(minibatch_size_) + step.batch_size);
  RUBATO_CHECK(begin >= 0 && begin < end && end <= static_cast<std::int64_t>(samples_.size()),
               "the minibatch is one of the step that was prepared");
  return std::span(samples_).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end - begin));
}

}  // namespace rubato
