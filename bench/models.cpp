#include "models.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/libtorch/model.hpp>

namespace rubato::bench {

namespace {

constexpr std::array<std::string_view, 4> kNames{"mnist-cnn", "residual-20", "wide-mlp",
                                                 "transformer"};
// The names of the same networks among the built-in models.
constexpr std::array<std::string_view, kNames.size()> kBuiltIn{
    "mnist-cnn", "resnet20", "mlp:hidden=1024/1024", "transformer"};

}  // namespace

std::span<const std::string_view> model_names() {
  return kNames;
}

ModelFactory model(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) throw Error(unknown_name_message("model", name, kNames));
  return builtin_model(kBuiltIn.at(static_cast<std::size_t>(found - kNames.begin())), {});
}

}  // namespace rubato::bench
