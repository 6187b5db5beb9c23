#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rubato/runtime/workers.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {

struct SgdOptions {
  /// In [0, 1).
  double momentum = 0;
  /// At least 0; multiplied by the parameter and added to its gradient (L2).
  double weight_decay = 0;
  /// Nesterov's form; needs a momentum above 0.
  bool nesterov = false;
};

/// Stochastic gradient descent with momentum on one flat parameter buffer, in one pass over memory
/// shared out over all threads (sgd_step() has the formula). The result is the same bits for every
/// number of threads.
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Sgd {
 public:
  /// For `size` parameters. Throws Error when an option is out of its range.
  Sgd(std::size_t size, const SgdOptions& options);

  /// One update. `gradient_sum` is the sum over the `minibatches` of the step; it is reduced as
  /// `reduction` says, with no pass of its own.
  void step(std::span<T> parameters, std::span<const T> gradient_sum, std::int64_t minibatches,
            GradientReduction reduction, const Rates& rates, Workers& workers);

 private:
  SgdOptions options_;
  std::size_t size_;
  std::vector<T> velocity_;
};

extern template class Sgd<float>;
extern template class Sgd<double>;

}  // namespace rubato
