#include <utility>

#include <rubato/core/error.hpp>
#include <rubato/train/objective.hpp>

#include "optim/make_optimizer.hpp"

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
std::unique_ptr<FlatOptimizer<T>> ObjectiveOf<T>::make_optimizer(const OptimizerOptions& options,
                                                                 const ParameterLayout& layout,
                                                                 std::vector<GroupOptions> groups) {
  return rubato::make_optimizer<T>(options, layout, std::move(groups));
}

template class ObjectiveOf<float>;
template class ObjectiveOf<double>;

}  // namespace rubato
