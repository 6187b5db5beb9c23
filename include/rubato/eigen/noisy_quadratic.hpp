#pragma once

#include <memory>
#include <vector>

#include <rubato/recipe/quadratic_options.hpp>
#include <rubato/train/objective.hpp>

namespace rubato {

/// h_1 to h_dim. Throws Error for options out of their range.
[[nodiscard]] std::vector<double> eigenvalues_of(const QuadraticOptions& options);

/// The loss of a minibatch is L(w) + sum of xi_i w_i, whose gradient the noisy one is; xi is drawn
/// from the minibatch's StreamKey. The test's is L(w): the expected loss, exactly. No data is
/// needed: what the samples are plays no part but for their number. Throws Error for options out of
/// their range.
///
/// T is float or double.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> noisy_quadratic(const QuadraticOptions& options);

extern template std::unique_ptr<ObjectiveOf<float>> noisy_quadratic(const QuadraticOptions&);
extern template std::unique_ptr<ObjectiveOf<double>> noisy_quadratic(const QuadraticOptions&);

}  // namespace rubato
