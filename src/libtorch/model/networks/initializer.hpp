#pragma once

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

/// Gives the parameters of `model` new values, drawn from libtorch's generator in the order of
/// their declaration (InitializerOptions says which parameters get what).
void initialize(const Model& model, const InitializerOptions& options);

}  // namespace rubato
