#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/eigen.hpp>

#include "flat_parameters.hpp"

namespace rubato {

namespace {

template <class T>
FunctionParts<T> checked_parts(FunctionParts<T> parts) {
  if (parts.initial.empty()) {
    throw Error("a function without parameters; accepted: initial values for at least one");
  }
  if (parts.samples < 1) {
    throw Error(fmt::format("a function of {} samples; accepted: at least 1", parts.samples));
  }
  if (!parts.value_and_gradient) {
    throw Error("a function without value_and_gradient; accepted: any but an empty one");
  }
  return parts;
}

template <class T>
class FunctionEvaluator final : public Evaluator<T> {
 public:
  FunctionEvaluator(const FunctionParts<T>& parts, std::span<const T> parameters)
      : parts_(parts), parameters_(parameters) {}

  double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                  EvaluatorProgress& progress) override {
    progress.enter(Phase::loss);
    return parts_.value_and_gradient(parameters_, minibatch.samples,
                                     leaf.gradient.first(parameters_.size()));
  }

 private:
  const FunctionParts<T>& parts_;
  std::span<const T> parameters_;
};

template <class T>
class FunctionObjective final : public ObjectiveOf<T> {
 public:
  explicit FunctionObjective(FunctionParts<T> parts)
      : parts_(checked_parts(std::move(parts))),
        parameters_({{"parameters", {static_cast<std::int64_t>(parts_.initial.size())}}}) {
    std::copy(parts_.initial.begin(), parts_.initial.end(), values().begin());
  }

  std::int64_t samples() const override { return parts_.samples; }
  const std::vector<TrainedArray>& trained() const override { return parameters_.trained(); }
  const std::vector<NamedArray>& parameters() const override { return parameters_.arrays(); }
  std::span<T> flat_parameters() override { return parameters_.values(); }

  std::string fingerprint() const override { return parts_.fingerprint; }
  std::string test_fingerprint() const override { return parts_.fingerprint; }
  bool has_test() const override { return parts_.test != nullptr; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    static_cast<void>(workers), static_cast<void>(options);
    try {
      return parts_.test(values());
    } catch (...) {
      rethrow_with_place(Phase::evaluation, fmt::format("all{}", when));
    }
  }

  std::unique_ptr<Evaluator<T>> make_evaluator() override {
    return std::make_unique<FunctionEvaluator<T>>(parts_, values());
  }

 private:
  // Without the padding behind them.
  [[nodiscard]] std::span<T> values() const {
    return parameters_.values().first(parts_.initial.size());
  }

  FunctionParts<T> parts_;
  FlatParameters<T> parameters_;
};

}  // namespace

template <class T>
std::unique_ptr<ObjectiveOf<T>> function_objective(FunctionParts<T> parts) {
  return std::make_unique<FunctionObjective<T>>(std::move(parts));
}

template std::unique_ptr<ObjectiveOf<float>> function_objective(FunctionParts<float>);
template std::unique_ptr<ObjectiveOf<double>> function_objective(FunctionParts<double>);

}  // namespace rubato
