#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>

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
    if (parts_.weight && leaf.weight != nullptr) *leaf.weight = parts_.weight(minibatch.samples);
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
        values_(parts_.initial),
        parameters_{{.name = "parameters",
                     .type = element_type_of<T>(),
                     .shape = {static_cast<std::int64_t>(values_.size())},
                     .data = values_.data()}},
        trained_{{.array = parameters_.front(), .end = values_.size()}} {}

  std::int64_t samples() const override { return parts_.samples; }
  const std::vector<TrainedArray>& trained() const override { return trained_; }
  const std::vector<NamedArray>& parameters() const override { return parameters_; }
  std::span<T> flat_parameters() override { return values_; }

  std::string fingerprint() const override { return parts_.fingerprint; }
  std::string test_fingerprint() const override { return parts_.fingerprint; }
  bool has_test() const override { return parts_.test != nullptr; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    static_cast<void>(workers), static_cast<void>(options);
    try {
      return parts_.test(values_);
    } catch (...) {
      rethrow_with_place(Phase::evaluation, fmt::format("all{}", when));
    }
  }

  std::unique_ptr<Evaluator<T>> make_evaluator() override {
    return std::make_unique<FunctionEvaluator<T>>(parts_, values_);
  }

 private:
  FunctionParts<T> parts_;
  std::vector<T> values_;
  std::vector<NamedArray> parameters_;
  std::vector<TrainedArray> trained_;
};

}  // namespace

template <class T>
std::unique_ptr<ObjectiveOf<T>> function_objective(FunctionParts<T> parts) {
  return std::make_unique<FunctionObjective<T>>(std::move(parts));
}

template std::unique_ptr<ObjectiveOf<float>> function_objective(FunctionParts<float>);
template std::unique_ptr<ObjectiveOf<double>> function_objective(FunctionParts<double>);

}  // namespace rubato
