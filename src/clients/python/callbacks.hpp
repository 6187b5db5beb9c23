#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run.hpp>

#include "calling_thread.hpp"
#include "conversions.hpp"

namespace rubato::python {

/// Callables from Python that are called during training, on the calling thread only.
struct Callbacks {
  /// The destination of the progress display.
  struct Shown {
    pybind11::object write{};
    int descriptor = -1;
    bool redraws = false;
  };

  /// Callables, each of which may be None.
  pybind11::object on_step{};
  pybind11::object on_epoch{};
  std::optional<Shown> progress{};
};
/// Reads the dictionary that train() is given. Requires the GIL.
[[nodiscard]] Callbacks callbacks_of(const pybind11::dict& dict);

/// The records of a training.
struct Records {
  Table steps;
  Table epochs;
  Table minibatches;
  Table faults;
  Table monitored;
};

/// Keeps the records, calls the callbacks, and does what they ask for: ends training, sets its
/// rate, keeps their metrics. Ends a training for which nobody waits any more.
class Listener final : public Observer {
 public:
  /// All arguments must outlive the training.
  Listener(CallingThread& calling, const Callbacks& callbacks, Run& run);

  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  /// Throws if the training is abandoned: before it is evaluated, and before there is a checkpoint.
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void between_steps(Training& training) override;
  /// Keeps the statistics of a Monitor.
  void keep(const StepPlan& step, std::span<const TensorStatistics> tensors);

  [[nodiscard]] const Records& records() const { return records_; }
  /// Takes over the records of a listener to the same training before this one.
  void continue_from(Listener& before) { records_ = std::move(before.records_); }

 private:
  // The answer of a callback.
  struct Answer {
    bool stop = false;
    std::optional<double> learning_rate{};
    std::vector<MetricValue> metrics{};
  };
  static Answer answer_of(const pybind11::object& answered);
  // Passes `row` to a callback, and does what the answer asks for; metrics in the answer belong to
  // the "step" or "epoch" that `of` names, and are added to `row`.
  void call(Training& training, const pybind11::object& callback, std::string_view of,
            std::int64_t index, Row& row);

  CallingThread& calling_;
  const Callbacks& callbacks_;
  Run& run_;
  // These flags are read while the GIL is held.
  bool wants_steps_;
  bool wants_epochs_;
  // Why a callback wants training to end; empty if none does.
  std::string reason_;
  Records records_;
};

/// A user's rule in Python (rubato/_callbacks.py). Must be made and destroyed with the GIL.
struct RuleCalls {
  /// (batch size, {name: statistic}) -> {name: number}, the factor on the rate among them.
  pybind11::object answer;
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
/// Reads a dictionary of answer, state and load_state.
[[nodiscard]] std::shared_ptr<RuleCalls> rule_calls(const pybind11::dict& dict);

/// The rule as training sees it, as in FunctionRule. Python is called only once in a step: its
/// state is read together with the answer, and a loaded state is passed to it in the next step.
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
