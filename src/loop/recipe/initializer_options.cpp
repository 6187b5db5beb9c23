#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>

#include "base/core/text/options_row.hpp"

namespace rubato {

namespace {

constexpr std::array<Choice<bool>, 2> kDistributions{{{false, "uniform"}, {true, "normal"}}};
constexpr std::array<Choice<FanMode>, 2> kFans{{{FanMode::in, "in"}, {FanMode::out, "out"}}};

bool read_distribution(Spec& spec) {
  return spec.choice("distribution", false, kDistributions);
}

void read_nothing(Spec& /*spec*/, InitializerOptions& /*options*/) {}

void read_xavier(Spec& spec, InitializerOptions& options) {
  options.normal = read_distribution(spec);
  options.gain = spec.real("gain", options.gain, kPositive);
}

void read_msra(Spec& spec, InitializerOptions& options) {
  options.normal = read_distribution(spec);
  options.slope = spec.real("slope", options.slope, kAnyReal);
  options.fan = spec.choice("fan", options.fan, kFans);
}

void read_orthogonal(Spec& spec, InitializerOptions& options) {
  options.gain = spec.real("gain", options.gain, kPositive);
}

void read_normal(Spec& spec, InitializerOptions& options) {
  options.mean = spec.real("mean", options.mean, kAnyReal);
  options.deviation = spec.real("deviation", options.deviation, kNotNegative);
}

void read_uniform(Spec& spec, InitializerOptions& options) {
  options.low = spec.real("low", options.low, kAnyReal);
  options.high = spec.real("high", options.high, kAnyReal);
  if (!(options.low < options.high)) spec.reject("low", "it must be below high");
}

using InitializerRow = OptionsRow<InitializerOptions, InitializerKind>;

constexpr std::array<InitializerRow, kInitializers.size()> kInitializerRows{
    options_row(kInitializers, InitializerKind::standard,
                "the values that the model's constructor sets", read_nothing),
    options_row(kInitializers, InitializerKind::xavier,
                "variance gain^2 2 / (inputs + outputs) (Glorot and Bengio 2010)", read_xavier),
    options_row(kInitializers, InitializerKind::msra,
                "variance 2 / ((1 + slope^2) fan), for a leaky ReLU of that slope (He et al. 2015)",
                read_msra),
    options_row(kInitializers, InitializerKind::orthogonal,
                "orthogonal matrices times gain (Saxe et al. 2014)", read_orthogonal),
    options_row(kInitializers, InitializerKind::normal, "a normal distribution", read_normal),
    options_row(kInitializers, InitializerKind::uniform, "a uniform distribution", read_uniform),
    options_row(kInitializers, InitializerKind::one, "all 1", read_nothing),
    options_row(kInitializers, InitializerKind::zero, "all 0", read_nothing)};

}  // namespace

InitializerOptions parse_initializer(std::string_view text) {
  return parse_options("initializer", text, kInitializerRows, &InitializerOptions::kind);
}

std::vector<Strategy> initializers() {
  return strategies_of(kInitializerRows);
}

}  // namespace rubato
