#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

const at::Tensor& only_tensor(const Tensors& tensors, const char* what) {
  if (tensors.size() != 1) {
    throw_error(
        "{} {}, where one tensor is taken; accepted: one, or a model or a loss that takes all of "
        "them",
        tensors.size(), what);
  }
  return tensors.front();
}

std::optional<double> LossValue::weight_number() const {
  if (!weight.defined()) return std::nullopt;
  if (weight.numel() != 1) {
    throw_error(
        "the loss returns two tensors, the second of shape [{}]; accepted: one number, the mean "
        "over the samples, or two, a sum and its weight",
        fmt::join(weight.sizes(), ", "));
  }
  const auto number = weight.item<double>();
  if (number >= 0 && std::isfinite(number)) return number;
  throw_error("the loss has a weight of {}; accepted: a finite one of at least 0", number);
}

namespace {

namespace nn = torch::nn;

// Adds the rules of `module` if it is a Norm.
template <class Norm>
void add_if(const nn::Module& module, const std::string& prefix, std::vector<BufferRule>& rules) {
  const auto* norm = dynamic_cast<const Norm*>(&module);
  if (norm == nullptr || !norm->running_mean.defined()) return;
  const auto momentum = c10::optional<double>(norm->options.momentum());
  for (const char* statistic : {"running_mean", "running_var"}) {
    rules.push_back({.buffer = prefix + statistic,
                     .combination = BufferCombination::average,
                     .momentum = momentum ? std::optional<double>(*momentum) : std::nullopt,
                     .counter = prefix + "num_batches_tracked"});
  }
  // The counter is summed even if Module::to(torch::kDouble) has made it floating-point.
  rules.push_back(
      {.buffer = prefix + "num_batches_tracked", .combination = BufferCombination::sum});
}

}  // namespace

std::vector<BufferRule> buffer_rules_of(const nn::Module& module) {
  std::vector<BufferRule> rules;
  const auto add = [&rules](const nn::Module& part, const std::string& prefix) {
    add_if<nn::BatchNorm1dImpl>(part, prefix, rules);
    add_if<nn::BatchNorm2dImpl>(part, prefix, rules);
    add_if<nn::BatchNorm3dImpl>(part, prefix, rules);
    add_if<nn::InstanceNorm1dImpl>(part, prefix, rules);
    add_if<nn::InstanceNorm2dImpl>(part, prefix, rules);
    add_if<nn::InstanceNorm3dImpl>(part, prefix, rules);
  };
  add(module, "");
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    add(*item.value(), item.key() + ".");
  }
  return rules;
}

void detail::reject_inputs(std::size_t count) {
  throw_error("the data give {} input tensor{}, which the model's forward() does not take", count,
              count == 1 ? "" : "s");
}

}  // namespace rubato
