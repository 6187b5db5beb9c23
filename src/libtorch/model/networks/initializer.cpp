#include "initializer.hpp"

#include <string_view>

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

namespace rubato {

namespace {

namespace init = torch::nn::init;

void fill_weight(const at::Tensor& weight, const InitializerOptions& options) {
  switch (options.kind) {
    case InitializerKind::standard:
      break;
    case InitializerKind::xavier:
      options.normal ? init::xavier_normal_(weight, options.gain)
                     : init::xavier_uniform_(weight, options.gain);
      break;
    case InitializerKind::msra: {
      const init::FanModeType fan = options.fan == FanMode::in ? init::FanModeType(torch::kFanIn)
                                                               : init::FanModeType(torch::kFanOut);
      options.normal ? init::kaiming_normal_(weight, options.slope, fan)
                     : init::kaiming_uniform_(weight, options.slope, fan);
      break;
    }
    case InitializerKind::orthogonal:
      init::orthogonal_(weight, options.gain);
      break;
    case InitializerKind::normal:
      init::normal_(weight, options.mean, options.deviation);
      break;
    case InitializerKind::uniform:
      init::uniform_(weight, options.low, options.high);
      break;
    case InitializerKind::one:
      init::ones_(weight);
      break;
    case InitializerKind::zero:
      init::zeros_(weight);
      break;
  }
}

bool is_bias(std::string_view name) {
  return name == "bias" || name.ends_with(".bias");
}

}  // namespace

void initialize(const Model& model, const InitializerOptions& options) {
  if (options.kind == InitializerKind::standard) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model.parameters) {
    if (tensor.dim() >= 2) {
      fill_weight(tensor, options);
    } else if (is_bias(name)) {
      tensor.zero_();
    }
  }
}

}  // namespace rubato
