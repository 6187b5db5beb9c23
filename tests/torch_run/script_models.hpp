#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>

#include "support/temp_folder.hpp"

namespace rubato::test {

/// Of images of [batch, 1, 28, 28], the logits of ten classes: dropout, a weight that two names
/// share, a frozen bias, a counter, and a mean that forward() makes anew. No Python is needed.
inline torch::jit::Module every_part() {
  torch::jit::Module net("EveryPart");
  const at::Tensor weight = (at::arange(7840).sin() * 0.05).view({10, 784}).requires_grad_();
  net.register_parameter("weight", weight, false);
  net.register_parameter("tied", weight, false);
  net.register_parameter("frozen", at::arange(10).cos(), false);
  net.register_buffer("mean", at::zeros({10}));
  net.register_buffer("seen", at::zeros({}, at::kLong));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define(R"(
def forward(self, x):
    x = x.flatten(1)
    y = torch.linear(torch.dropout(x, 0.2, self.training), self.weight, self.frozen)
    if self.training:
        self.seen.add_(x.size(0))
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
    return y - self.mean + torch.linear(x, self.tied)
)");
  return net;
}

/// A file of TorchScript.
inline std::string file_of(const torch::jit::Module& module) {
  std::ostringstream bytes;
  module.save(bytes);
  return bytes.str();
}

/// The folder of the models that export_models.py writes; empty where there is no python3-torch.
inline const std::filesystem::path& exported_models() {
  static const TempFolder folder;
  static const std::filesystem::path path = [] {
    const std::string command = fmt::format("/usr/bin/python3 '{}' '{}' >/dev/null 2>&1",
                                            RUBATO_EXPORT_MODELS, folder.path().string());
    return std::system(command.c_str()) == 0 ? folder.path() : std::filesystem::path();
  }();
  return path;
}

}  // namespace rubato::test
