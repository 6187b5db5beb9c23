#pragma once

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/model/model.hpp>

namespace rubato {

/// A TorchScript module, as torch::jit::load() gives it, whose forward() takes the inputs of a
/// batch as tensors, one by one, and returns a tensor, or a tuple or list of tensors. The running
/// statistics of its modules with a `momentum` (a number or None), a `running_mean` and a
/// `running_var` combine as averages.
[[nodiscard]] Model make_model(const torch::jit::Module& module);

/// A factory of copies of the module:
///
///     const auto factory = rubato::script_factory(torch::jit::load("net.pt"));
[[nodiscard]] ModelFactory script_factory(const torch::jit::Module& module);

}  // namespace rubato
