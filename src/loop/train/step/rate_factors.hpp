// Factors of the learning rate for some parameters (TrainOptions::rate_factors).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

namespace rubato {

/// Parses "PATTERN=FACTOR", several joined with ','. Empty text means none. Throws Error for a text
/// of another form, a factor that is negative or not finite, and a pattern that is there twice.
[[nodiscard]] std::vector<RateFactor> parse_rate_factors(std::string_view text);

/// Returns the text that parse_rate_factors() reads back to the same factors.
[[nodiscard]] std::string to_text(const std::vector<RateFactor>& factors);

/// Returns the factor of the first pattern that takes the parameter, or 1.
[[nodiscard]] double rate_factor_of(const NamedArray& array,
                                    const std::vector<RateFactor>& factors);

}  // namespace rubato
