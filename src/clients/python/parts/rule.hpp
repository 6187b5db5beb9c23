#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/numbers/rule.hpp>

#include "beside_python.hpp"

namespace rubato::python {

/// A user's rule in Python (rubato/_callbacks.py). Must be made and destroyed with the GIL.
struct RuleCalls {
  /// (batch size, {name: statistic}) -> the factor on the rate.
  pybind11::object factor;
  /// () -> list of numbers, and (that list) -> None; both None for a rule that remembers nothing.
  pybind11::object state;
  pybind11::object load_state;
  /// State of the rule before the first step.
  std::vector<double> at_first{};

  // The members below belong to the training under way.

  /// The thread on which the rule is called.
  CallingThread* calling = nullptr;
  /// The norms of the gradients are measured for the rule.
  bool sees_norms = false;
};
/// Reads a dictionary of factor, state and load_state.
[[nodiscard]] std::shared_ptr<RuleCalls> rule_calls(const pybind11::dict& dict);

/// The rule as training sees it: lr(B) = lr_ref x factor(step), as in FunctionRule. Python is
/// called only once in a step: its state is read together with the factor, and a loaded state is
/// passed to it in the next step.
class PythonRule final : public Rule {
 public:
  /// A thread with the GIL must hold `calls` for longer.
  explicit PythonRule(std::shared_ptr<const RuleCalls> calls)
      : calls_(std::move(calls)), state_(calls_->at_first) {}

  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] RuleNeeds needs() const override { return {.group_norms = calls_->sees_norms}; }
  /// Throws Interrupted if Python has raised an exception instead of answering.
  [[nodiscard]] Rates rates(const RuleInput& input) override;
  void visit_state(NumberVisitor& numbers) override;

 private:
  [[nodiscard]] bool remembers() const { return !calls_->state.is_none(); }

  std::shared_ptr<const RuleCalls> calls_;
  std::vector<double> state_;
  // Python has not been given the loaded state yet.
  bool is_loaded_ = false;
};

}  // namespace rubato::python
