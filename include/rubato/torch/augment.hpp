#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace rubato {

/// Changes the inputs of a minibatch (their first tensor, where there are several) before the model
/// sees them, in training only. Random numbers
/// that it draws from libtorch are the minibatch's, so that the same minibatch is changed in the
/// same way whoever computes it; other randomness is its own to mind. Called by several threads at
/// once.
using Augmentation = std::function<at::Tensor(const at::Tensor& inputs)>;

/// Moves each image, of shape [..., height, width] behind the samples, by up to `pixels` >= 0 up or
/// down and left or right, each as likely; what comes in at the edge repeats the edge. Throws Error
/// for a negative number.
[[nodiscard]] Augmentation random_shift(std::int64_t pixels);

}  // namespace rubato
