#pragma once

// The networks that the benchmarks train, all on images of 28x28 in 10 classes. Their twins in
// Python are in bench/pytorch/networks.py.

#include <span>
#include <string_view>

#include <rubato/libtorch/model.hpp>

namespace rubato::bench {

/// All are built in: mnist-cnn; residual-20: He et al. 2016, three groups of three blocks of 16, 32
/// and 64 channels; wide-mlp: 784-1024-1024-10; transformer: the rows of an image as 28 tokens, two
/// encoder layers with 4 heads and 64 features.
[[nodiscard]] std::span<const std::string_view> model_names();
/// Throws Error for a name that is not one of them.
[[nodiscard]] ModelFactory model(std::string_view name);

}  // namespace rubato::bench
