#include "run_loss.hpp"

#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/check.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

// Converts targets to numbers of the outputs' type and shape: a class becomes a row of zeros with a
// single 1.
at::Tensor numbers_for(const at::Tensor& output, const at::Tensor& target) {
  const bool classes =
      !target.is_floating_point() && output.dim() == target.dim() + 1 && output.size(-1) > 1;
  if (classes && target.ge(output.size(-1)).any().item<bool>()) {
    throw Error(
        fmt::format("{} outputs are too few for class {}; accepted: an output for each class",
                    output.size(-1), target.max().item<std::int64_t>()));
  }
  const at::Tensor numbers = classes ? at::one_hot(target, output.size(-1)) : target;
  const at::Tensor typed = numbers.to(output.scalar_type());
  return typed.numel() == output.numel() ? typed.view_as(output) : typed;
}

Loss on_numbers(const Loss& loss) {
  Loss on_them([loss](const at::Tensor& output, const at::Tensor& target) {
    return loss(output, numbers_for(output, target));
  });
  return std::move(on_them).with_threshold(loss.threshold()).with_check(loss.check());
}

}  // namespace

Loss run_loss(const Parsed<LossChoice>& loss, double label_smoothing, std::string_view script) {
  if (const auto& file = loss->script) {
    return script_loss(read_script(script, fmt::format("--loss: {}", file->string())));
  }
  const std::string_view name = loss->name;
  const ClassWeights classes{.ignore = loss->ignore, .weights = loss->class_weights};
  if (name == "cross-entropy") return cross_entropy_loss(classes, label_smoothing);
  if (name == "nll") return nll_loss(classes, label_smoothing);
  if (name == "mse") return on_numbers(mse_loss());
  RUBATO_CHECK(name == "bce", "the configuration accepts known losses only");
  return on_numbers(bce_loss());
}

}  // namespace rubato
