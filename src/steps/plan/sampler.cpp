#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/random.hpp>

#include "base/state/sha256.hpp"

namespace rubato {

namespace {

// Cumulative sums of the weights.
std::vector<double> cumulative(const std::vector<double>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    throw Error(fmt::format("sample {} has the weight {}; accepted: finite numbers of at least 0",
                            i, weights[i]));
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
    throw Error(fmt::format("{} weights for {} samples; accepted: one for each sample", sums.size(),
                            draw.samples));
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
  Sampler (*make)();
};

constexpr std::array<SamplerRow, 2> kSamplers{
    {{"shuffle", "a new random permutation for each epoch, by --seed", [] { return Sampler(); }},
     {"in-order", "the order of the data in every epoch, for data that are shuffled already",
      in_order}}};

}  // namespace

Sampler make_sampler(std::string_view text, const OwnSamplers& own) {
  if (auto made = own.make(text)) return *std::move(made);
  const Spec spec(text);
  Sampler sampler = find_row("sampler", spec.name(), kSamplers).make();
  spec.finish();
  return sampler;
}

std::vector<std::string_view> sampler_names() {
  return row_names(kSamplers);
}

std::vector<Strategy> samplers() {
  return strategies_of(kSamplers, [](const SamplerRow&, Spec&) {});
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

}  // namespace rubato
