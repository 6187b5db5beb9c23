#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>

namespace rubato {

const std::vector<NamedArray>& Objective::buffers() const {
  static const std::vector<NamedArray> none;
  return none;
}

Evaluation Objective::test(Workers& workers, const EvaluationOptions& options,
                           std::string_view when) {
  static_cast<void>(workers), static_cast<void>(options), static_cast<void>(when);
  throw Error(
      "an objective says that it has a test, and has none; accepted: test() with has_test()");
}

template <class T>
void Evaluator<T>::evaluate_several(std::span<const Minibatch> minibatches, const Leaf<T>& leaf,
                                    std::span<double> losses, EvaluatorProgress& progress) {
  static_cast<void>(minibatches), static_cast<void>(leaf);
  static_cast<void>(losses), static_cast<void>(progress);
  throw Error(
      "an objective says that it computes several minibatches at once, and its evaluator does not; "
      "accepted: evaluate_several() with minibatches_at_once()");
}

template class Evaluator<float>;
template class Evaluator<double>;
template class ObjectiveOf<float>;
template class ObjectiveOf<double>;

}  // namespace rubato
