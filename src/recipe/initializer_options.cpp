#include <rubato/core/error.hpp>
#include <rubato/core/family.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/initializer_options.hpp>

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

struct InitializerRow {
  std::string_view name;
  std::string_view help;
  void (*read)(Spec& spec, InitializerOptions& options);
};

constexpr InitializerRow initializer(InitializerKind kind, std::string_view help,
                                     void (*read)(Spec&, InitializerOptions&)) {
  return {choice_name(kInitializers, kind), help, read};
}

constexpr std::array<InitializerRow, kInitializers.size()> kInitializerRows{
    initializer(InitializerKind::standard, "what the model's own constructor does", read_nothing),
    initializer(InitializerKind::xavier,
                "variance gain^2 2 / (inputs + outputs) (Glorot and Bengio 2010)", read_xavier),
    initializer(InitializerKind::msra,
                "variance 2 / ((1 + slope^2) fan), for a leaky ReLU of that slope (He et al. 2015)",
                read_msra),
    initializer(InitializerKind::orthogonal, "orthogonal matrices times gain (Saxe et al. 2014)",
                read_orthogonal),
    initializer(InitializerKind::normal, "a normal distribution", read_normal),
    initializer(InitializerKind::uniform, "a uniform distribution", read_uniform),
    initializer(InitializerKind::one, "all 1", read_nothing),
    initializer(InitializerKind::zero, "all 0", read_nothing)};

}  // namespace

InitializerOptions parse_initializer(std::string_view text) {
  Spec spec(text);
  InitializerOptions options;
  options.kind = parse_choice("initializer", spec.name(), kInitializers);
  find_row("initializer", spec.name(), kInitializerRows).read(spec, options);
  spec.finish();
  return options;
}

std::vector<Strategy> initializers() {
  return strategies_of(kInitializerRows, [](const InitializerRow& row, Spec& spec) {
    InitializerOptions options;
    row.read(spec, options);
  });
}

}  // namespace rubato
