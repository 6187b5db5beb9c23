#include <memory>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "libtorch/model/script/script_call.hpp"
#include "libtorch/torch/datasets/class_rows.hpp"

namespace rubato {

namespace {

double checked(double label_smoothing) {
  if (label_smoothing >= 0 && label_smoothing < 1) return label_smoothing;
  throw Error(
      fmt::format("label smoothing {}: accepted are values from 0 to below 1", label_smoothing));
}

// What has no rows goes to libtorch as it is, which takes it or says why not.
ClassRows rows_of(const at::Tensor& output, const at::Tensor& target) {
  return class_rows(output, target).value_or(ClassRows{.outputs = output, .targets = target});
}

}  // namespace

Loss nll_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  return [spread](const at::Tensor& output, const at::Tensor& target) {
    const ClassRows rows = rows_of(output, target);
    const at::Tensor loss = at::nll_loss(rows.outputs, rows.targets);
    return spread == 0 ? loss : (1 - spread) * loss - spread * rows.outputs.mean();
  };
}

Loss cross_entropy_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  return [spread](const at::Tensor& output, const at::Tensor& target) {
    const ClassRows rows = rows_of(output, target);
    return at::cross_entropy_loss(rows.outputs, rows.targets, /*weight=*/at::Tensor(),
                                  at::Reduction::Mean, /*ignore_index=*/-100, spread);
  };
}

Loss mse_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::mse_loss(output, target);
  };
}

Loss bce_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::binary_cross_entropy_with_logits(output, target);
  };
}

Loss script_loss(const torch::jit::Module& module) {
  const torch::jit::Module copy = module.deepcopy();
  for (const auto& named : copy.named_parameters()) {
    at::Tensor parameter = named.value;
    parameter.detach_();
  }
  const auto call = std::make_shared<ScriptCall>(copy);
  if (call->sets_attributes()) {
    throw Error(
        "forward() of the TorchScript loss sets attributes; accepted: a loss that keeps nothing "
        "from one call to the next");
  }
  return [call](const Tensors& outputs, const Tensors& targets) -> at::Tensor {
    Tensors all = outputs;
    all.insert(all.end(), targets.begin(), targets.end());
    return only_tensor((*call)(all), "results of the TorchScript loss");
  };
}

}  // namespace rubato
