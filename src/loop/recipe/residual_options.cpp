#include <array>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kMostChannels = 4096;

// Counts a convolution without a bias, and its normalisation.
constexpr std::int64_t convolution(std::int64_t from, std::int64_t to, std::int64_t kernel) {
  return from * to * kernel * kernel + 2 * to;
}

}  // namespace

ResidualOptions read_residual(Spec& spec) {
  ResidualOptions options;
  options.width = spec.whole("width", options.width, 1, kMostChannels);
  return options;
}

ResidualOptions parse_residual(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "resnet20") {
    throw Error(
        fmt::format("'{}' is not a residual network; accepted: resnet20, with the argument width",
                    spec.name()));
  }
  const ResidualOptions options = read_residual(spec);
  spec.finish();
  return options;
}

std::int64_t residual_parameters(const ResidualOptions& options, std::int64_t channels,
                                 std::int64_t classes) {
  const std::array<std::int64_t, 3> widths{options.width, 2 * options.width, 4 * options.width};
  std::int64_t parameters = convolution(channels, options.width, 3);
  std::int64_t from = options.width;
  for (const std::int64_t to : widths) {
    parameters += convolution(from, to, 3) + 5 * convolution(to, to, 3);
    if (from != to) parameters += convolution(from, to, 1);
    from = to;
  }
  return parameters + (from + 1) * classes;
}

}  // namespace rubato
