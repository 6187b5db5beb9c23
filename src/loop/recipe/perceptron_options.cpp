#include <string>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

namespace {

// Two layers of this width have 2^40 weights.
constexpr std::int64_t kWidest = std::int64_t{1} << 20;

}  // namespace

PerceptronOptions read_perceptron(Spec& spec) {
  PerceptronOptions options;
  options.hidden = spec.wholes("hidden", options.hidden, 1, kWidest);
  options.activation = spec.choice("activation", options.activation, kActivations);
  return options;
}

PerceptronOptions parse_perceptron(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "mlp") {
    throw Error(
        fmt::format("'{}' is not a perceptron; accepted: mlp, with arguments hidden and "
                    "activation",
                    spec.name()));
  }
  PerceptronOptions options = read_perceptron(spec);
  spec.finish();
  return options;
}

std::int64_t dense_parameters(std::int64_t inputs, std::span<const std::int64_t> hidden,
                              std::int64_t outputs) {
  std::int64_t parameters = 0;
  for (const std::int64_t width : hidden) {
    parameters += (inputs + 1) * width;
    inputs = width;
  }
  return parameters + (inputs + 1) * outputs;
}

}  // namespace rubato
