#include <rubato/core/spec.hpp>
#include <rubato/recipe/precision.hpp>

namespace rubato {

PrecisionOptions parse_precision(std::string_view text) {
  constexpr RealRange kGrowth{1, 1e300, true, true, "a number of at least 1"};
  constexpr RealRange kBackoff{0, 1, false, false, "a number between 0 and 1"};
  constexpr std::int64_t kMostSteps = 1'000'000'000;
  Spec spec(text);
  PrecisionOptions options;
  options.precision = parse_choice("precision", spec.name(), kPrecisions);
  if (options.precision == Precision::fp16) {
    LossScaleOptions& scale = options.loss_scale;
    scale.initial = spec.real("scale", scale.initial, kPositive);
    scale.growth = spec.real("growth", scale.growth, kGrowth);
    scale.backoff = spec.real("backoff", scale.backoff, kBackoff);
    scale.interval = spec.whole("interval", scale.interval, 1, kMostSteps);
    scale.smallest = spec.real("smallest", scale.smallest, kPositive);
    require_valid(scale);
  }
  spec.finish();
  return options;
}

}  // namespace rubato
