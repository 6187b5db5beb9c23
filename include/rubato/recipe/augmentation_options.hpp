#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>

namespace rubato {

/// What training images go through before the model sees them, drawn anew in each epoch.
enum class AugmentationKind { shift, flip, crop, cutout };

inline constexpr std::array<Choice<AugmentationKind>, 4> kAugmentations{
    {{AugmentationKind::shift, "shift"},
     {AugmentationKind::flip, "flip"},
     {AugmentationKind::crop, "crop"},
     {AugmentationKind::cutout, "cutout"}}};

struct AugmentationOptions {
  AugmentationKind kind = AugmentationKind::shift;
  /// Of shift: how far at most; of crop: how wide the padding is; of cutout: the side of the
  /// square.
  std::int64_t pixels = 0;

  friend bool operator==(const AugmentationOptions&, const AugmentationOptions&) = default;
};

/// From "flip", "shift:pixels=2" and the like, several with '+' between them, in the order in which
/// they are done; empty text is none. Throws Error for what there is not.
[[nodiscard]] std::vector<AugmentationOptions> parse_augmentations(std::string_view text);

struct Strategy;  // core/family.hpp
/// All of them, with their arguments.
[[nodiscard]] std::vector<Strategy> augmentations();

}  // namespace rubato
