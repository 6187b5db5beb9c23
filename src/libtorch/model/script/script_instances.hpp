#pragma once

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// As script_factory(), but the parameters of all instances lie where the module's do, for a
/// trainer, which gives them memory of its own (Replica): those of a large model are not copied for
/// each.
[[nodiscard]] ModelFactory sharing_script_factory(const torch::jit::Module& module);

/// Lets go of the values of the module's parameters, which keep their shapes.
void forget_parameters(const torch::jit::Module& module);

}  // namespace rubato
