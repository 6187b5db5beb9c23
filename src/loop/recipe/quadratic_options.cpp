#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kMostDimensions = 1'000'000'000;
constexpr RealRange kCondition{1, kLargestReal, true, true, "a number of at least 1"};

void require_whole(std::string_view name, std::int64_t value, std::int64_t max) {
  if (value >= 1 && value <= max) return;
  throw Error(fmt::format("quadratic: {} {}; accepted: 1 to {}", name, value, max));
}

void require_real(std::string_view name, double value, const RealRange& range) {
  if (range.holds(value)) return;
  throw Error(
      fmt::format("quadratic: {} {}; accepted: {}", name, value, range.accepted_for(value)));
}

}  // namespace

void require_valid(const QuadraticOptions& options) {
  require_whole("dim", options.dim, kMostDimensions);
  require_whole("samples", options.samples, kMaxDatasetSize);
  require_real("noise", options.noise, kNotNegative);
  if (!options.condition) return;
  require_real("condition", *options.condition, kCondition);
  if (options.dim == 1 && *options.condition != 1) {
    throw Error(fmt::format("quadratic: condition {} in one dimension; accepted there: 1",
                            *options.condition));
  }
}

QuadraticOptions read_quadratic(Spec& spec) {
  QuadraticOptions options;
  options.dim = spec.whole("dim", options.dim, 1, kMostDimensions);
  options.condition = spec.real("condition", Unset{"dim"}, kCondition);
  options.noise = spec.real("noise", options.noise, kNotNegative);
  options.samples = spec.whole("samples", options.samples, 1, kMaxDatasetSize);
  require_valid(options);
  return options;
}

QuadraticOptions parse_quadratic(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "quadratic") {
    throw Error(
        fmt::format("'{}' is not a quadratic; accepted: quadratic, with arguments dim, "
                    "condition, noise and samples",
                    spec.name()));
  }
  const QuadraticOptions options = read_quadratic(spec);
  spec.finish();
  return options;
}

}  // namespace rubato
