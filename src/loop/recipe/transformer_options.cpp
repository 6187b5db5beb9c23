#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kMostLayers = 1000;
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 20;

constexpr std::int64_t linear(std::int64_t from, std::int64_t to) {
  return (from + 1) * to;
}

// Counts all parameters except those that make features of a token.
std::int64_t parameters_behind_embedding(const TransformerOptions& options, std::int64_t tokens,
                                         std::int64_t classes) {
  const std::int64_t dim = options.dim;
  const std::int64_t layer = 2 * (2 * dim) + linear(dim, 3 * dim) + linear(dim, dim) +
                             linear(dim, options.hidden) + linear(options.hidden, dim);
  return tokens * dim + options.layers * layer + 2 * dim + linear(dim, classes);
}

}  // namespace

TransformerOptions read_transformer(Spec& spec) {
  TransformerOptions options;
  options.layers = spec.whole("layers", options.layers, 1, kMostLayers);
  options.heads = spec.whole("heads", options.heads, 1, kMostFeatures);
  options.dim = spec.whole("dim", options.dim, 1, kMostFeatures);
  options.hidden = spec.whole("hidden", options.hidden, 1, kMostFeatures);
  options.dropout = spec.real("dropout", options.dropout, kBelowOne);
  if (options.dim % options.heads != 0) {
    spec.reject("heads",
                fmt::format("{} heads cannot share {} features; accepted: a divisor of dim",
                            options.heads, options.dim));
  }
  return options;
}

TransformerOptions parse_transformer(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "transformer") {
    throw Error(fmt::format(
        "'{}' is not a transformer; accepted: transformer, with arguments layers, heads, "
        "dim, hidden and dropout",
        spec.name()));
  }
  const TransformerOptions options = read_transformer(spec);
  spec.finish();
  return options;
}

std::int64_t transformer_parameters(const TransformerOptions& options, std::int64_t tokens,
                                    std::int64_t inputs, std::int64_t classes) {
  return linear(inputs, options.dim) + parameters_behind_embedding(options, tokens, classes);
}

std::int64_t sequence_transformer_parameters(const TransformerOptions& options, std::int64_t tokens,
                                             std::int64_t vocabulary, std::int64_t classes) {
  return vocabulary * options.dim + parameters_behind_embedding(options, tokens, classes);
}

}  // namespace rubato
