#include "rule.hpp"

#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/run/session.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using namespace py::literals;

py::dict statistics_of(const RuleInput& input) {
  py::dict statistics("lr"_a = input.base_learning_rate, "scale"_a = input.scale(),
                      "ref_batch"_a = input.reference_batch_size,
                      "minibatch"_a = input.minibatch_size, "minibatches"_a = input.minibatches(),
                      "epoch_size"_a = input.epoch_size);
  if (input.groups.empty()) return statistics;
  py::list groups;
  for (const GradientNorms& norms : input.groups) {
    groups.append(py::dict("minibatch_square"_a = norms.minibatch_square,
                           "mean_square"_a = norms.mean_square));
  }
  statistics["groups"] = groups;
  statistics["from_pair"] = input.from_pair;
  return statistics;
}

}  // namespace

std::shared_ptr<RuleCalls> rule_calls(const py::dict& dict) {
  auto calls = std::make_shared<RuleCalls>(RuleCalls{
      .factor = dict["factor"], .state = dict["state"], .load_state = dict["load_state"]});
  if (!calls->state.is_none()) calls->at_first = calls->state().cast<std::vector<double>>();
  return calls;
}

std::string_view PythonRule::name() const {
  return kOwn;
}

Rates PythonRule::rates(const RuleInput& input) {
  double factor = 0;
  CallingThread& calling = *calls_->calling;
  const bool answered = calling.run([&] {
    if (is_loaded_) static_cast<void>(calls_->load_state(state_));
    is_loaded_ = false;
    factor = calls_->factor(input.batch_size, statistics_of(input)).cast<double>();
    if (remembers()) state_ = calls_->state().cast<std::vector<double>>();
  });
  calling.require_not_abandoned();
  if (!answered) throw Interrupted("Python's rule has no answer");
  return scaled(input, factor);
}

void PythonRule::visit_state(NumberVisitor& numbers) {
  numbers.rest(state_);
  if (!numbers.loading()) return;
  if (!remembers() && !state_.empty()) {
    throw Error(
        "rule: the run was trained with one that remembers something; accepted: one with state() "
        "and load_state()");
  }
  is_loaded_ = remembers();
}

}  // namespace rubato::python
