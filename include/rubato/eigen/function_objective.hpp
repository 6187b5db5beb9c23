#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rubato/train/objective.hpp>

namespace rubato {

/// A function of the user's own, to be minimised: the mean over samples of something that depends
/// on parameters.
template <class T>
struct FunctionParts {
  /// Where the parameters begin, at least one.
  std::vector<T> initial{};
  /// How many samples there are, at least 1; a minibatch names some of them by number, from 0.
  std::int64_t samples = 0;
  /// Returns the mean over these samples, and writes its derivatives by the parameters, which are 0
  /// before. Called by several threads at once; what it computes must depend on its arguments
  /// alone. What it throws ends training as a TrainingError that says where.
  std::function<double(std::span<const T> parameters, std::span<const std::int64_t> samples,
                       std::span<T> gradient)>
      value_and_gradient{};
  /// Evaluates the parameters after each epoch, where there is one. Called by the thread that
  /// trains.
  std::function<Evaluation(std::span<const T> parameters)> test{};
  /// What a saved state knows the function and its data by: a state is refused where it differs.
  std::string fingerprint = "a function";
};

/// The parameters are one array of that name, "parameters". Throws Error for parts that are missing
/// or out of their range.
///
/// T is float or double.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> function_objective(FunctionParts<T> parts);

extern template std::unique_ptr<ObjectiveOf<float>> function_objective(FunctionParts<float>);
extern template std::unique_ptr<ObjectiveOf<double>> function_objective(FunctionParts<double>);

}  // namespace rubato
