// The factors are part of the layout that an optimizer gets, and rates_of_layer() multiplies the
// rate of each tensor by its own. They do not divide the parameters into groups, as options of a
// group do: AdaScale has a gain and a memory for each group, so a fork could not change them.

#include "rate_factors.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "step_part.hpp"

namespace rubato {

std::vector<RateFactor> parse_rate_factors(std::string_view text) {
  std::vector<RateFactor> factors;
  if (text.empty()) return factors;
  for (const std::string_view piece : split_at(text, ',')) {
    const std::size_t equals = piece.rfind('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw_error("'{}' is not of the form PATTERN=FACTOR; accepted: such as head.*=10,stem.*=0",
                  piece);
    }
    const std::string_view pattern = piece.substr(0, equals);
    if (std::ranges::find(factors, pattern, &RateFactor::pattern) != factors.end()) {
      throw_error("'{}' has two factors; accepted: one for each pattern", pattern);
    }
    factors.push_back({.pattern = std::string(pattern),
                       .factor = parse_real(piece.substr(equals + 1), kNotNegative)});
  }
  return factors;
}

std::string to_text(const std::vector<RateFactor>& factors) {
  const auto texts = vector_of(
      factors, [](const RateFactor& of) { return fmt::format("{}={}", of.pattern, of.factor); });
  return fmt::to_string(fmt::join(texts, ","));
}

double rate_factor_of(const NamedArray& array, const std::vector<RateFactor>& factors) {
  const auto found =
      std::ranges::find_if(factors, [&](const RateFactor& of) { return takes(of.pattern, array); });
  return found == factors.end() ? 1 : found->factor;
}

StepPart rate_factors_part() {
  return {.bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            return {{"rate_factors", to_text(options.rate_factors), OnFork::free}};
          },
          .check =
              [](const TrainOptions& options) {
                for (const auto& [pattern, factor] : options.rate_factors) {
                  if (kNotNegative.holds(factor)) continue;
                  throw_error(
                      "the learning rate of '{}' has the factor {}: accepted are finite values of "
                      "at least 0",
                      pattern, factor);
                }
                // Checkpoints have them as text.
                if (parse_rate_factors(to_text(options.rate_factors)) == options.rate_factors)
                  return;
                throw Error("factors of learning rates: a pattern has a comma; accepted: without");
              }};
}

}  // namespace rubato
