#pragma once

#include <cstdint>
#include <string_view>

namespace rubato {

class Spec;

/// A residual network for small images (He et al. 2016, section 4.2).
struct ResidualOptions {
  /// Channels of the first of its three groups of blocks, of at least 1: the second has twice as
  /// many, the third four times.
  std::int64_t width = 16;
};

/// "resnet20", or "resnet20:width=32". Throws Error.
[[nodiscard]] ResidualOptions parse_residual(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] ResidualOptions read_residual(Spec& spec);

/// Weights of resnet20 for images of so many channels.
[[nodiscard]] std::int64_t residual_parameters(const ResidualOptions& options,
                                               std::int64_t channels, std::int64_t classes);

}  // namespace rubato
