#include <rubato/base/spec.hpp>
#include <rubato/loop/training_options.hpp>

#include "base/core/text/options_row.hpp"
#include "base/core/text/split.hpp"

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
  std::vector<AugmentationOptions> all;
  if (text.empty()) return all;
  for (const std::string_view part : split_at(text, '+')) {
    all.push_back(
        parse_options("augmentation", part, kAugmentationRows, &AugmentationOptions::kind));
  }
  return all;
}

std::vector<Strategy> augmentations() {
  return strategies_of(kAugmentationRows);
}

}  // namespace rubato
