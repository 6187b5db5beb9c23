#pragma once

#include <rubato/model/model.hpp>

namespace rubato {

/// Negative log-likelihood of log-probabilities [batch, classes] against class indices [batch].
[[nodiscard]] Loss nll_loss();
/// Cross entropy of logits [batch, classes] against class indices [batch].
[[nodiscard]] Loss cross_entropy_loss();
/// Mean squared error of outputs against targets of the same shape.
[[nodiscard]] Loss mse_loss();

}  // namespace rubato
