#include <numeric>
#include <random>
#include <utility>

#include <rubato/plan/shuffle.hpp>

#include "core/check.hpp"

namespace rubato {

std::vector<std::int64_t> random_permutation(std::int64_t n, std::uint64_t seed) {
  RUBATO_CHECK(n >= 0 && n <= kMaxDatasetSize, "the permutation is one that torch draws so");
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(n));
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  // The remainder is not exactly uniform; it is what torch.randperm does.
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

SampleOrder::SampleOrder(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed)
    : dataset_size_(dataset_size), minibatch_size_(minibatch_size), seed_(seed) {
  RUBATO_CHECK(minibatch_size >= 1 && minibatch_size <= dataset_size,
               "the data have at least one minibatch");
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
  const std::int64_t needed =
      step.shift + (step.first_minibatch.value() + step.minibatches) * minibatch_size_;
  while (samples_.empty() || static_cast<std::int64_t>(samples_.size()) < needed) {
    const auto next = static_cast<std::uint64_t>(epoch.value()) + samples_.size() / size;
    const std::vector<std::int64_t> order = random_permutation(dataset_size_, seed_ + next);
    samples_.insert(samples_.end(), order.begin(), order.end());
  }
}

std::span<const std::int64_t> SampleOrder::minibatch(const StepPlan& step,
                                                     MinibatchIndex minibatch) const {
  const std::int64_t begin = step.shift + minibatch.value() * minibatch_size_;
  RUBATO_CHECK(begin >= 0 && begin + minibatch_size_ <= static_cast<std::int64_t>(samples_.size()),
               "the minibatch is one of the step that was prepared");
  return std::span(samples_).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(minibatch_size_));
}

}  // namespace rubato
