#pragma once

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/model/model.hpp>

namespace rubato {

// Losses of classes, of one thing in each sample or of several, such as the tokens of a sequence:
// class indices are [batch] or [batch, ...], outputs [batch, classes], [batch, ..., classes] or, in
// PyTorch's order, [batch, classes, ...], and the mean is that of all things. `label_smoothing`,
// from 0 to below 1, is the share of each target that is spread over all classes alike (Szegedy et
// al. 2016, section 7). Throw Error when it is out of its range.

/// Negative log-likelihood of log-probabilities against class indices.
[[nodiscard]] Loss nll_loss(double label_smoothing = 0);
/// Cross entropy of logits against class indices.
[[nodiscard]] Loss cross_entropy_loss(double label_smoothing = 0);
/// Mean squared error of outputs against targets of the same shape.
[[nodiscard]] Loss mse_loss();
/// Binary cross entropy of the sigmoid of outputs against targets of the same shape, from 0 to 1.
[[nodiscard]] Loss bce_loss();
/// What forward() of a TorchScript module makes of the outputs, one by one, and then the targets:
/// one number, the mean over the samples. Its parameters are not trained. Several threads call it
/// at once: throws Error where it sets attributes.
[[nodiscard]] Loss script_loss(const torch::jit::Module& module);

}  // namespace rubato
