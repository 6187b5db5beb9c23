// Augmentations and precisions are tables with a row for each name, whose function reads the
// arguments from a Spec; the lists for help come from the same rows, so an argument is described
// where it is read. Augmentations joined with '+' are applied in their order. The operators that
// rubato computes itself are not strategies with arguments, and have a small parser of their own.

#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/libtorch_options.hpp>

#include "base/core/text/options_row.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMostPixels = 1000;

void read_flip(Spec& /*spec*/, AugmentationOptions& /*options*/) {}

void read_shift(Spec& spec, AugmentationOptions& options) {
  options.pixels = spec.whole("pixels", 2, 0, kMostPixels);
}
void read_crop(Spec& spec, AugmentationOptions& options) {
  options.pixels = spec.whole("padding", 4, 0, kMostPixels);
}
void read_cutout(Spec& spec, AugmentationOptions& options) {
  options.pixels = spec.whole("size", 8, 1, kMostPixels);
}

using AugmentationRow = OptionsRow<AugmentationOptions, AugmentationKind>;

constexpr std::array<AugmentationRow, kAugmentations.size()> kAugmentationRows{
    options_row(kAugmentations, AugmentationKind::shift,
                "shifts each image by up to that many pixels up or down and left or right, and "
                "repeats its edge",
                read_shift),
    options_row(kAugmentations, AugmentationKind::flip,
                "mirrors each image, left to right, with probability 1/2", read_flip),
    options_row(kAugmentations, AugmentationKind::crop,
                "pads each image with zeros and cuts it out at a random place; zero is the mean of "
                "normalised pixels",
                read_crop),
    options_row(kAugmentations, AugmentationKind::cutout,
                "sets a square of that side, in pixels, at a random place of each image to zero; "
                "part of it may lie outside (DeVries and Taylor 2017)",
                read_cutout)};

}  // namespace

std::vector<AugmentationOptions> parse_augmentations(std::string_view text) {
  if (text.empty()) return {};
  return vector_of(split_at(text, '+'), [](std::string_view part) {
    return parse_options("augmentation", part, kAugmentationRows, &AugmentationOptions::kind);
  });
}

std::vector<Strategy> augmentations() {
  return strategies_of(kAugmentationRows);
}

namespace {

struct Named {
  std::string_view name;
  bool ReplacedOperators::*member;
};
constexpr std::array<Named, 4> kNames{{{"convolution", &ReplacedOperators::convolution},
                                       {"max-pool", &ReplacedOperators::max_pool},
                                       {"batch-norm", &ReplacedOperators::batch_norm},
                                       {"attention", &ReplacedOperators::attention}}};

}  // namespace

ReplacedOperators parse_replaced_operators(std::string_view text) {
  if (text == "all") return {};
  if (text == "none") return ReplacedOperators::none();
  ReplacedOperators operators = ReplacedOperators::none();
  std::vector<std::string_view> accepted{"all", "none"};
  for (const Named& named : kNames) accepted.push_back(named.name);
  for (const std::string_view name : split_at(text, ',')) {
    if (name == "all" || name == "none") {
      const auto operators_only = std::span(accepted).subspan(2);
      throw_error("'{0}' is joined with other operators; accepted: {0} alone, or some of {1}", name,
                  fmt::join(operators_only, ", "));
    }
    const auto* const named = std::ranges::find(kNames, name, &Named::name);
    if (named == kNames.end()) throw Error(unknown_name_message("operator", name, accepted));
    operators.*named->member = true;
  }
  return operators;
}

std::string to_string(const ReplacedOperators& operators) {
  std::vector<std::string_view> names;
  for (const Named& named : kNames) {
    if (operators.*named.member) names.push_back(named.name);
  }
  if (names.empty()) return "none";
  if (names.size() == kNames.size()) return "all";
  return fmt::format("{}", fmt::join(names, ","));
}

namespace {

constexpr RealRange kGrowth{1, kLargestReal, true, true, "a number of at least 1"};
constexpr RealRange kBackoff{0, 1, false, false, "a number between 0 and 1"};
constexpr std::int64_t kMostInterval = 1'000'000'000;

void read_no_scale(Spec& /*spec*/, PrecisionOptions& /*options*/) {}

void read_loss_scale(Spec& spec, PrecisionOptions& options) {
  LossScaleOptions& scale = options.loss_scale;
  scale.initial = spec.real("scale", scale.initial, kPositive);
  scale.growth = spec.real("growth", scale.growth, kGrowth);
  scale.backoff = spec.real("backoff", scale.backoff, kBackoff);
  scale.interval = spec.whole("interval", scale.interval, 1, kMostInterval);
  scale.smallest = spec.real("smallest", scale.smallest, kPositive);
  require_valid(scale);
}

using PrecisionRow = OptionsRow<PrecisionOptions, Precision>;

constexpr std::array<PrecisionRow, kPrecisions.size()> kPrecisionRows{
    options_row(kPrecisions, Precision::full, "the parameters' type throughout", read_no_scale),
    options_row(kPrecisions, Precision::bf16,
                "forward and backward in bfloat16 where libtorch's autocast considers it safe",
                read_no_scale),
    options_row(kPrecisions, Precision::fp16,
                "float16 storage with float32 master weights, emulated, and dynamic loss scaling",
                read_loss_scale)};

}  // namespace

PrecisionOptions parse_precision(std::string_view text) {
  return parse_options("precision", text, kPrecisionRows, &PrecisionOptions::precision);
}

std::vector<Strategy> precisions() {
  return strategies_of(kPrecisionRows);
}

}  // namespace rubato
