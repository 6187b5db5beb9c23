#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/numbers/rule.hpp>

#include "beside_python.hpp"

namespace rubato::python {

/// A rule of a user's in Python (rubato/_callbacks.py). To be made and destroyed with the GIL.
struct RuleCalls {
  /// (batch size, {name: statistic}) -> the factor on the rate.
  pybind11::object factor;
  /// () -> list of numbers, and (that list) -> None; both None for a rule that remembers nothing.
  pybind11::object state;
  pybind11::object load_state;
  /// What it remembers before the first step.
  std::vector<double> at_first{};

  // Of the training under way.

  /// Where it is called.
  CallingThread* calling = nullptr;
  /// Whether the norms of the gradients are measured for it.
  bool sees_norms = false;
};
/// Of a dictionary of factor, state and load_state.
[[nodiscard]] std::shared_ptr<RuleCalls> rule_calls(const pybind11::dict& dict);

/// The rule as training has it: lr(B) = lr_ref x factor(step), as FunctionRule. Python is called
/// once in a step and at no other time: what it remembers is asked for with the factor, and what is
/// loaded waits for the next step.
class PythonRule final : public Rule {
 public:
  /// Somebody with the GIL has `calls` longer.
  explicit PythonRule(std::shared_ptr<const RuleCalls> calls)
      : calls_(std::move(calls)), state_(calls_->at_first) {}

  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] RuleNeeds needs() const override { return {.group_norms = calls_->sees_norms}; }
  /// Throws Interrupted where Python has raised something, and so has no answer.
  [[nodiscard]] Rates rates(const RuleInput& input) override;
  void visit_state(NumberVisitor& numbers) override;

 private:
  [[nodiscard]] bool remembers() const { return !calls_->state.is_none(); }

  std::shared_ptr<const RuleCalls> calls_;
  std::vector<double> state_;
  // Whether Python is still to hear of it.
  bool is_loaded_ = false;
};

}  // namespace rubato::python
