#pragma once

// Clang needs this header before the ones below.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// A script_factory() whose instances share the parameters of the module, for a trainer, which
/// gives them memory of its own (Replica): the parameters of a large model are not copied for each
/// instance.
[[nodiscard]] ModelFactory sharing_script_factory(const torch::jit::Module& module);

/// Releases the values of the module's parameters, which keep their shapes.
void forget_parameters(const torch::jit::Module& module);

}  // namespace rubato
