#pragma once

// The networks that the benchmarks train, all on images of 28x28 in 10 classes.
// bench/pytorch/networks.py has the same networks in Python.

#include <span>
#include <string_view>

#include <rubato/libtorch/model.hpp>

namespace rubato::bench {

/// The names of the networks, all of which are built-in models: mnist-cnn; residual-20 (He et al.
/// 2016: three groups of three blocks of 16, 32 and 64 channels); wide-mlp (784-1024-1024-10);
/// transformer (the rows of an image as 28 tokens, two encoder layers with 4 heads and 64
/// features).
[[nodiscard]] std::span<const std::string_view> model_names();
/// The network of that name. Throws Error if there is none.
[[nodiscard]] ModelFactory model(std::string_view name);

}  // namespace rubato::bench
