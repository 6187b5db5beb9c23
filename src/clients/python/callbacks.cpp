// Listener and PythonRule are called on the thread that trains, which never holds the GIL
// (docs/adr/0045-python.md): whenever they need Python, CallingThread::run() executes the call on
// the thread that has called rubato.train(). Records are kept as C++ values, and become Python
// objects only within such a call or after the training. The answer of a callback is applied by the
// training thread: a rate is set at once, and the wish to stop takes effect between two steps. A
// rule's state comes along with its answer and is kept here, so checkpoints and failed steps read
// and restore it without the GIL.

#include "callbacks.hpp"

#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "loop/train/record_schemas.hpp"
#include "runs/run/session.hpp"

namespace rubato::python {

namespace py = pybind11;

Callbacks callbacks_of(const py::dict& dict) {
  Callbacks callbacks{.on_step = dict["on_step"], .on_epoch = dict["on_epoch"]};
  if (const py::object progress = dict["progress"]; !progress.is_none()) {
    const auto [write, descriptor, redraws] = progress.cast<std::tuple<py::object, int, bool>>();
    callbacks.progress = {.write = write, .descriptor = descriptor, .redraws = redraws};
  }
  return callbacks;
}

Listener::Listener(CallingThread& calling, const Callbacks& callbacks, Run& run)
    : calling_(calling),
      callbacks_(callbacks),
      run_(run),
      wants_steps_(!callbacks.on_step.is_none()),
      wants_epochs_(!callbacks.on_epoch.is_none()) {}

void Listener::on_fault(Training& training, const StepPlan& step,
                        std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training);
  for (const FaultRecord& fault : faults) {
    records_.faults.add(row_of(fault_schema(), {step.index, fault, cores_left}));
  }
}

void Listener::on_step(Training& training, const StepRecord& step) {
  calling_.require_not_abandoned();
  Row row = row_of(step_schema(), step);
  for (const MinibatchRecord& minibatch : step.minibatches) {
    records_.minibatches.add(row_of(minibatch_schema(), {step.plan.index, minibatch}));
  }
  if (wants_steps_) call(training, callbacks_.on_step, "step", step.plan.index.value(), row);
  records_.steps.add(row);
}

void Listener::on_epoch(Training& training, const EpochRecord& epoch) {
  Row row = row_of(epoch_schema(), epoch);
  if (wants_epochs_) call(training, callbacks_.on_epoch, "epoch", epoch.epoch.value(), row);
  records_.epochs.add(row);
}

void Listener::between_steps(Training& training) {
  calling_.require_not_abandoned();
  if (!reason_.empty()) run_.stop_for_now(training, std::exchange(reason_, {}));
}

void Listener::keep(const StepPlan& step, std::span<const TensorStatistics> tensors) {
  for (const TensorStatistics& tensor : tensors) {
    records_.monitored.add(row_of(monitor_schema(), {step.index, tensor}));
  }
}

Listener::Answer Listener::answer_of(const py::object& answered) {
  // rubato/_callbacks.py has checked the answer.
  if (answered.is_none()) return {};
  if (py::isinstance<py::bool_>(answered)) return {.stop = true};
  const auto [rate, metrics] =
      answered.cast<std::pair<std::optional<double>, std::map<std::string, double>>>();
  Answer answer{.learning_rate = rate};
  for (const auto& [name, value] : metrics) answer.metrics.push_back({name, value});
  return answer;
}

void Listener::call(Training& training, const py::object& callback, std::string_view of,
                    std::int64_t index, Row& row) {
  Answer answer;
  static_cast<void>(calling_.run([&] { answer = answer_of(callback(dict_of(row))); }));
  if (answer.stop) reason_ = fmt::format("on_{} returned False", of);
  if (answer.learning_rate) training.set_learning_rate(*answer.learning_rate);
  for (const MetricValue& metric : answer.metrics) row.push_back({metric.name, metric.value});
  if (!answer.learning_rate && answer.metrics.empty()) return;
  run_.write_metrics(
      {.of = of, .index = index, .learning_rate = answer.learning_rate, .values = answer.metrics});
}

namespace {

using namespace py::literals;

py::dict statistics_of(const RuleInput& input) {
  py::dict statistics("lr"_a = input.base_learning_rate, "scale"_a = input.scale(),
                      "ref_batch"_a = input.reference_batch_size,
                      "minibatch"_a = input.minibatch_size, "minibatches"_a = input.minibatches(),
                      "epoch_size"_a = input.epoch_size);
  const auto put = [&](const char* name, const std::optional<double>& number) {
    if (number) statistics[name] = *number;
  };
  put("momentum", input.optimizer.momentum);
  put("beta1", input.optimizer.beta1);
  put("beta2", input.optimizer.beta2);
  put("epsilon", input.optimizer.epsilon);
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
      .answer = dict["answer"], .state = dict["state"], .load_state = dict["load_state"]});
  if (!calls->state.is_none()) calls->at_first = calls->state().cast<std::vector<double>>();
  return calls;
}

std::string_view PythonRule::name() const {
  return kOwn;
}

Rates PythonRule::rates(const RuleInput& input) {
  std::map<std::string, double> answer;
  CallingThread& calling = *calls_->calling;
  const bool answered = calling.run([&] {
    if (is_loaded_) static_cast<void>(calls_->load_state(state_));
    is_loaded_ = false;
    answer = calls_->answer(input.batch_size, statistics_of(input))
                 .cast<std::map<std::string, double>>();
    if (remembers()) state_ = calls_->state().cast<std::vector<double>>();
  });
  calling.require_not_abandoned();
  if (!answered) throw Interrupted("Python's rule has no answer");
  const auto find = [&](const char* name) -> std::optional<double> {
    const auto found = answer.find(name);
    return found == answer.end() ? std::nullopt : std::optional(found->second);
  };
  Rates rates = scaled(input, find("factor").value_or(1));
  rates.weight_decay_factor = find("weight_decay_factor").value_or(1);
  rates.optimizer = {.momentum = find("momentum"),
                     .beta1 = find("beta1"),
                     .beta2 = find("beta2"),
                     .epsilon = find("epsilon"),
                     .mean_factor = find("mean_factor"),
                     .variance_factor = find("variance_factor"),
                     .forget_squares = find("forget_squares").value_or(0) != 0};
  return rates;
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
