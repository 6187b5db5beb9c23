#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/workers.hpp>

namespace rubato {

/// The gradient transforms of a training, applied one after the other.
///
/// T is float or double.
template <class T>
class TransformChain {
 public:
  /// Throws Error for a transform that does not support parameters of type T.
  TransformChain(std::span<const OwnGradientTransform> own, TransformParts parts);

  [[nodiscard]] bool empty() const { return links_.empty(); }
  /// Applies all transforms to `gradient`, whose stream has the seed of the training. Throws Error
  /// if one makes a value infinite or NaN.
  void apply(StepGradient<T> gradient, Workers& workers);
  void visit_state(StateVisitor& state);

 private:
  struct Link {
    std::string name;
    std::unique_ptr<GradientTransform<T>> transform;
  };

  void clear_padding(std::span<T> values) const;

  TransformParts parts_;
  std::vector<Link> links_;
};

extern template class TransformChain<float>;
extern template class TransformChain<double>;

}  // namespace rubato
