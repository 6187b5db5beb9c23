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

template class ObjectiveOf<float>;
template class ObjectiveOf<double>;

}  // namespace rubato
