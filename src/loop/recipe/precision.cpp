#include <rubato/base/spec.hpp>
#include <rubato/loop/training_options.hpp>

#include "base/core/text/options_row.hpp"

namespace rubato {

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
