#include <numeric>
#include <random>
#include <utility>

#include <rubato/core/check.hpp>
#include <rubato/plan/shuffle.hpp>

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

}  // namespace rubato
