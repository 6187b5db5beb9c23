// This file has the defaults of Objective and Evaluator, the errors of training with their place,
// and function_objective(). rethrow_with_place() is called in handlers and keeps the type of
// exceptions that others recognise: those that report a lack of memory, and a TrainingError that
// already has its place. All others become a TrainingError, whose message is cut to the cause and
// whose details() have the whole text. All evaluators of a FunctionObjective read its one array of
// parameters, and call the user's function on several threads at once.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"

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

namespace {

// The texts of libtorch's exceptions end with the place of the throw and its stack.
std::string without_stack(const std::string& text) {
  const std::size_t stack = text.find("\nException raised from ");
  return stack == std::string::npos ? text : text.substr(0, text.find('\n'));
}

// The texts of TorchScript's interpreter begin with a general failure notice, and end with the
// cause.
std::string essence_of(const std::string& text) {
  if (text.find("TorchScript interpreter") == std::string::npos) return text;
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return text;
  const std::size_t newline = text.rfind('\n', end);
  return text.substr(newline == std::string::npos ? 0 : newline + 1, end - newline);
}

}  // namespace

TrainingError::TrainingError(Phase phase, const std::string& place, const std::string& message,
                             std::string details)
    : Error(fmt::format("{} of {}: {}", choice_name(kPhases, phase), place, message)),
      phase_(phase),
      details_(std::move(details)) {}

TrainingError::TrainingError(const TrainingError& error, const std::string& more)
    : Error(error.what() + more),
      std::nested_exception(error),
      phase_(error.phase_),
      details_(error.details_) {}

void rethrow_with_place(Phase phase, const std::string& place) {
  try {
    throw;
  } catch (const TrainingError&) {
    throw;
  } catch (const MemoryError&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw TrainingError(phase, place, essence_of(without_stack(error.what())), error.what());
  } catch (...) {
    throw TrainingError(phase, place, "an exception that is not a std::exception", "");
  }
}

namespace {

template <class T>
FunctionParts<T> checked_parts(FunctionParts<T> parts) {
  if (parts.initial.empty()) {
    throw Error("a function without parameters; accepted: initial values for at least one");
  }
  if (parts.samples < 1) {
    throw_error("a function of {} samples; accepted: at least 1", parts.samples);
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
