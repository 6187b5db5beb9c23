#include <array>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

namespace {

struct TransformRow {
  std::string_view name;
  std::string_view help;
  OwnGradientTransform (*make)(Spec& spec);
};

constexpr std::array<TransformRow, 1> kTransforms{
    {{"noise", "adds normal numbers of that deviation, as differential privacy does after clipping",
      [](Spec& spec) {
        return gaussian_noise(spec.real("deviation", Required{"0.01"}, kPositive));
      }}}};

}  // namespace

OwnGradientTransform gaussian_noise(double deviation) {
  return function_transform(
      fmt::format("noise {}", deviation), [deviation](const auto& gradient, Workers& workers) {
        using T = typename std::decay_t<decltype(gradient.values)>::value_type;
        const NormalNumbers normal(gradient.stream);
        workers.for_each_range(gradient.values.size(), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            gradient.values[i] += static_cast<T>(deviation * normal[i]);
          }
        });
      });
}

OwnGradientTransform make_transform(std::string_view text, const OwnTransforms& own) {
  if (auto made = own.make(text)) return *std::move(made);
  Spec spec(text);
  OwnGradientTransform transform =
      find_row("gradient transform", spec.name(), kTransforms).make(spec);
  spec.finish();
  return transform;
}

std::vector<std::string_view> transform_names() {
  return row_names(kTransforms);
}

std::vector<Strategy> transforms() {
  return strategies_of(
      kTransforms, [](const TransformRow& row, Spec& spec) { static_cast<void>(row.make(spec)); });
}

}  // namespace rubato
