#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/recipe/augmentation_options.hpp>

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

// Of the images of a minibatch, of shape [samples, channels, height, width], each by itself.

/// Mirrors it, left to right, with probability 1/2.
[[nodiscard]] Augmentation random_flip();
/// Cuts its size out of it with `padding` >= 0 zeros on each side, each place as likely. Throws
/// Error for a negative number.
[[nodiscard]] Augmentation random_crop(std::int64_t padding);
/// Sets a square of `size` >= 1 pixels to zero whose middle lies anywhere in it: part of the square
/// may lie outside. Throws Error for a smaller number.
[[nodiscard]] Augmentation random_cutout(std::int64_t size);

/// All of them, one after the other; empty where there is none.
[[nodiscard]] Augmentation augmentation(const std::vector<AugmentationOptions>& options);

}  // namespace rubato
