#pragma once

#include <rubato/model/model.hpp>

namespace rubato {

// Losses of classes: `label_smoothing`, from 0 to below 1, is the share of each target that is
// spread over all classes alike (Szegedy et al. 2016, section 7). Throw Error when it is out of its
// range.

/// Negative log-likelihood of log-probabilities [batch, classes] against class indices [batch].
[[nodiscard]] Loss nll_loss(double label_smoothing = 0);
/// Cross entropy of logits [batch, classes] against class indices [batch].
[[nodiscard]] Loss cross_entropy_loss(double label_smoothing = 0);
/// Mean squared error of outputs against targets of the same shape.
[[nodiscard]] Loss mse_loss();

}  // namespace rubato
