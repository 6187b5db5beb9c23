// All random numbers here are pure functions of their arguments. NormalNumbers is SplitMix64 (G. L.
// Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014)
// with random access: number n is the mixed value of the seed plus n increments.
// random_permutation() repeats the steps of torch.randperm, including its slight bias. SampleOrder
// holds the orders of successive epochs in one list: prepare() drops epochs that have passed and
// appends those that the step needs, so any minibatch of a step is one span. weighted() draws by
// binary search in the cumulative sums of the weights.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/check.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"

namespace rubato {

NormalNumbers::NormalNumbers(const StreamKey& key)
    : seed_(seed_of(key.seed, {key.epoch, key.step, key.minibatch})) {}

double NormalNumbers::uniform(std::uint64_t n) const {
  constexpr std::uint64_t kStep = 0x9E37'79B9'7F4A'7C15;
  return static_cast<double>(mixed(seed_ + n * kStep) >> 11U) * 0x1p-53;
}

std::array<double, 2> NormalNumbers::pair(std::uint64_t n) const {
  // The logarithm's argument is above 0, because uniform numbers are below 1.
  const double radius = std::sqrt(-2 * quick::log(1 - uniform(2 * n)));
  const auto [cosine, sine] = quick::direction(uniform(2 * n + 1));
  return {radius * cosine, radius * sine};
}

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
    throw_error(
        "sampler {} gave {} indices for epoch {}; accepted: as many as there are samples, {}",
        sampler_.name, order.size(), epoch.value() + 1, dataset_size_);
  }
  for (const std::int64_t sample : order) {
    if (sample >= 0 && sample < dataset_size_) continue;
    throw_error("sampler {} gave the index {} for epoch {}; accepted: 0 to {}", sampler_.name,
                sample, epoch.value() + 1, dataset_size_ - 1);
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

namespace {

// Cumulative sums of the weights.
std::vector<double> cumulative(const std::vector<double>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    throw_error("sample {} has the weight {}; accepted: finite numbers of at least 0", i,
                weights[i]);
  }
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  if (sums.empty() || !(sums.back() > 0) || !std::isfinite(sums.back())) {
    throw Error(
        "the weights of the samples have no sum to draw by; accepted: one for each sample, above 0 "
        "for at least one of them, with a finite sum");
  }
  return sums;
}

std::vector<std::int64_t> draws_by(const std::vector<double>& sums, const EpochDraw& draw) {
  if (draw.samples != static_cast<std::int64_t>(sums.size())) {
    throw_error("{} weights for {} samples; accepted: one for each sample", sums.size(),
                draw.samples);
  }
  // No minibatch has this key.
  const NormalNumbers numbers(
      {.seed = draw.seed, .epoch = draw.epoch.value(), .step = -1, .minibatch = -1});
  std::vector<std::int64_t> samples(sums.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double at = numbers.uniform(i) * sums.back();
    // The sample is the first whose sum is above `at`, so its weight is above 0. A product that was
    // rounded up to the whole sum belongs to the last sample with a weight.
    const auto found = at < sums.back() ? std::upper_bound(sums.begin(), sums.end(), at)
                                        : std::lower_bound(sums.begin(), sums.end(), sums.back());
    samples[i] = found - sums.begin();
  }
  return samples;
}

struct SamplerRow {
  std::string_view name;
  std::string_view help;
  Sampler (*make)(Spec& spec);
};

constexpr std::string_view kBalanced = "weighted:balanced";

constexpr std::array<SamplerRow, 4> kSamplers{
    {{"shuffle", "a new random permutation for each epoch, by --seed",
      [](Spec&) { return Sampler(); }},
     {"in-order", "the order of the data in every epoch, for data that are shuffled already",
      [](Spec&) { return in_order(); }},
     {"weighted",
      "draws with replacement, in proportion to weights that the data have (docs/data.md)",
      [](Spec& spec) {
        const std::string column =
            spec.text("column", Required{"weight"},
                      "a column that ignore= of the table names, or an array of tensors:FILE");
        return weighted_in_data("weighted:column=" + column, {.column = column});
      }},
     {kBalanced, "draws with replacement, each class as often as any other",
      [](Spec&) { return weighted_in_data(std::string(kBalanced), {}); }}}};

}  // namespace

Sampler make_sampler(std::string_view text, const OwnSamplers& own) {
  const bool is_balanced = text.starts_with(kBalanced);
  if (is_balanced && text.size() > kBalanced.size()) {
    const std::string_view more = text.substr(kBalanced.size());
    const std::string_view argument = more.substr(more.starts_with(',') ? 1 : 0);
    throw_error("{} takes no arguments, but has '{}'", kBalanced,
                argument.substr(0, argument.find('=')));
  }
  if (!is_balanced) {
    if (auto made = own.make(text)) return *std::move(made);
  }
  // The text of a Spec has no name with a colon.
  Spec spec = is_balanced ? Spec::example(text) : Spec(text);
  Sampler sampler = find_row("sampler", spec.name(), kSamplers).make(spec);
  spec.finish();
  return sampler;
}

std::vector<std::string_view> sampler_names() {
  return row_names(kSamplers);
}

std::vector<Strategy> samplers() {
  return strategies_of(
      kSamplers, [](const SamplerRow& row, Spec& spec) { static_cast<void>(row.make(spec)); });
}

Sampler in_order() {
  return {.name = "in order", .order = [](const EpochDraw& draw) {
            std::vector<std::int64_t> samples(static_cast<std::size_t>(draw.samples));
            std::iota(samples.begin(), samples.end(), std::int64_t{0});
            return samples;
          }};
}

Sampler weighted(const std::vector<double>& weights) {
  const std::string_view bytes(reinterpret_cast<const char*>(weights.data()),
                               weights.size() * sizeof(double));
  return {.name = fmt::format("weighted by {}", Sha256::hex_of(bytes)),
          .order = [sums = cumulative(weights)](const EpochDraw& draw) {
            return draws_by(sums, draw);
          }};
}

Sampler weighted_in_data(std::string name, SampleWeights weights) {
  return {.name = name,
          .order = [name](const EpochDraw&) -> std::vector<std::int64_t> {
            throw_error("sampler {}: the weights are in the data of a run; accepted: weighted()",
                        name);
          },
          .weights = std::move(weights)};
}

}  // namespace rubato
