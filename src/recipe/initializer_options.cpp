#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/initializer_options.hpp>

namespace rubato {

namespace {

constexpr std::array<Choice<bool>, 2> kDistributions{{{false, "uniform"}, {true, "normal"}}};
constexpr std::array<Choice<FanMode>, 2> kFans{{{FanMode::in, "in"}, {FanMode::out, "out"}}};

}  // namespace

InitializerOptions parse_initializer(std::string_view text) {
  Spec spec(text);
  InitializerOptions options;
  options.kind = parse_choice("initializer", spec.name(), kInitializers);
  switch (options.kind) {
    case InitializerKind::standard:
    case InitializerKind::one:
    case InitializerKind::zero:
      break;
    case InitializerKind::xavier:
      options.normal =
          parse_choice("distribution", spec.text("distribution", "uniform"), kDistributions);
      options.gain = spec.real("gain", options.gain, kPositive);
      break;
    case InitializerKind::msra:
      options.normal =
          parse_choice("distribution", spec.text("distribution", "uniform"), kDistributions);
      options.slope = spec.real("slope", options.slope, kAnyReal);
      options.fan = parse_choice("fan", spec.text("fan", "in"), kFans);
      break;
    case InitializerKind::orthogonal:
      options.gain = spec.real("gain", options.gain, kPositive);
      break;
    case InitializerKind::normal:
      options.mean = spec.real("mean", options.mean, kAnyReal);
      options.deviation = spec.real("deviation", options.deviation, kNotNegative);
      break;
    case InitializerKind::uniform:
      options.low = spec.real("low", options.low, kAnyReal);
      options.high = spec.real("high", options.high, kAnyReal);
      if (!(options.low < options.high)) spec.reject("low", "it must be below high");
      break;
  }
  spec.finish();
  return options;
}

}  // namespace rubato
