// train() converts its arguments with the GIL, runs train_in() on a thread without it
// (run_beside_python()), and converts the Outcome with it again. Call holds all that one training
// uses and is shared with that thread, because a second Ctrl-C abandons the training while it still
// runs (docs/adr/0045-python.md). PythonOwner is the owner of the Session
// (docs/adr/0057-sessions.md). PythonHost takes part in an elastic run, in which each role has a
// session of its own and the records pass from one Listener to the next. After an exception of a
// callback or a signal's handler the training stops after its step, and later errors become
// warnings, so that the caller gets the first exception together with what was trained.

#include "training.hpp"

#include <array>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "callbacks.hpp"
#include "calling_thread.hpp"
#include "conversions.hpp"
#include "hosts/elastic/host_driver.hpp"
#include "libtorch/torch/guards.hpp"
#include "loop/train/step/step_part.hpp"
#include "module.hpp"
#include "own_parts.hpp"
#include "request.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/fork.hpp"
#include "runs/run/run_request.hpp"
#include "runs/run/session.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

// The outcome of a training, without any of Python's objects.
struct Outcome {
  SessionOutcome session{};
  std::vector<std::string> warnings{};
  std::string folder{};
  // The call, as users write it, that continues the run.
  std::string to_go_on{};
  std::string model_name{};
  std::shared_ptr<TrainedOn> trained_on = std::make_shared<TrainedOn>();
  std::shared_ptr<Listener> listener{};
  // Sets of weights by name: "" for the model's, "best", and those of averages.
  std::map<std::string, std::vector<NamedTensor>> weights{};
  // TorchScript with the weights, if the model is TorchScript.
  std::optional<std::string> model{};
  std::optional<std::int64_t> best_epoch{};
  // Null unless the training was interrupted and has no folder.
  std::shared_ptr<Unfinished> unfinished{};
  // There are weights.
  bool is_whole = false;
};

// A call of rubato.train() with all that it uses: abandoned work ends with this object.
struct Call {
  // The turn ends last, after all members below are destroyed.
  TrainingTurn turn{};
  // A training seeds the generator; calls of Python's find their own state.
  GeneratorKeeper generator{};
  Request request{};
  OwnParts parts{};
  Callbacks callbacks{};
  Outcome outcome{};
};

// Arguments without a name in the run's configuration have to be given again.
std::string call_to_go_on(const Call& call, const Run& run) {
  const OwnParts& parts = call.parts;
  std::string own;
  if (!parts.model.empty()) own = "model, ";
  if (!parts.inputs.empty()) own += parts.model.empty() ? "data=data, " : "data, ";
  if (!parts.test_inputs.empty()) own += "validation=validation, ";
  if (!parts.loss.empty()) own += "loss=loss, ";
  if (call.request.rule) own += "rule=rule, ";
  if (call.request.run.sampler.text() == kOwn) own += "sampler=sampler, ";
  // Without a folder, the exception that Python has raised last has the result.
  const std::string folder = run.location().path().string();
  return fmt::format("rubato.train({}resume={})", own,
                     folder.empty() ? "sys.last_value.result" : python_quoted(folder));
}

// Keeps warnings for the calling thread; an exception of Python ends the session.
class PythonOwner final : public SessionOwner {
 public:
  PythonOwner(Call& call, CallingThread& calling) : call_(call), calling_(calling) {}

  void warn(const std::string& text) override { call_.outcome.warnings.push_back(text); }
  [[nodiscard]] bool wants_to_stop() override {
    return TrainingTurn::is_to_end() || calling_.has_failed();
  }
  [[nodiscard]] std::string to_go_on(const Run& run) const override {
    return "to go on: " + call_to_go_on(call_, run);
  }

 private:
  Call& call_;
  CallingThread& calling_;
};

std::vector<NamedTensor> weights_of(std::span<const NamedArray> parameters,
                                    std::span<const NamedArray> buffers) {
  std::vector<NamedTensor> weights = copies_of(parameters);
  for (NamedTensor& buffer : copies_of(buffers)) weights.push_back(std::move(buffer));
  return weights;
}

void put_weights(Run& run, Outcome& outcome) {
  const Trainer& trainer = run.trainer();
  const auto weights_now = [&] { return weights_of(trainer.parameters(), trainer.buffers()); };
  outcome.weights[""] = weights_now();
  if (const auto model = run.workload().model_file(trainer.parameters(), trainer.buffers())) {
    std::string& bytes = outcome.model.emplace();
    model([&bytes](std::string_view next) { bytes += next; });
  }
  for (const OtherWeightsInfo& other : other_weights(&trainer.options())) {
    std::vector<NamedTensor>& weights = outcome.weights[std::string(other.name)];
    trainer.with_weights(other.name, [&] { weights = weights_now(); });
  }
  if (const BestWeights* const best = run.best(); best != nullptr && best->value()) {
    outcome.weights["best"] = weights_of(best->parameters(), best->buffers());
    outcome.best_epoch = best->epoch().value();
  }
  outcome.is_whole = true;
}

// Progress that is written on the calling thread; empty if nothing has to be shown.
std::optional<ProgressOut> progress_of(const Callbacks& callbacks, CallingThread& calling) {
  if (!callbacks.progress) return std::nullopt;
  return ProgressOut{
      .write =
          [&callbacks, &calling](std::string_view text) {
            static_cast<void>(calling.run(
                [&] { static_cast<void>(callbacks.progress->write(py::str(std::string(text)))); }));
            return 0;
          },
      .descriptor = callbacks.progress->descriptor,
      .style = callbacks.progress->redraws ? ProgressStyle::bar : ProgressStyle::lines,
      .logs_steps = false};
}

RunLocation location_in(const Call& call, PythonOwner& owner) {
  if (const auto& unfinished = call.request.unfinished) {
    return RunLocation::continue_from(unfinished->state, call.request.run);
  }
  return location_to_train(
      call.request,
      {.load = [&](const RunConfiguration& run) { return load_workload(run, call.parts); },
       .report = [&](const std::string& text) { owner.warn(text); },
       .on_begin = {},
       .on_step =
           [&](std::int64_t /*steps*/) {
             if (owner.wants_to_stop()) throw Interrupted("the fork was ended before it began");
           }});
}

SessionParts parts_of(Call& call, CallingThread& calling, std::shared_ptr<const Workload> workload,
                      RunLocation location) {
  std::optional<Run::Steps> steps = call.parts.steps;
  if (steps) steps = with_end(*std::move(steps), call.request.run.on_trace_end);
  return {.workload = std::move(workload),
          .location = std::move(location),
          .steps = std::move(steps),
          .progress = progress_of(call.callbacks, calling)};
}

// Prepares the listener and the parts of the result that depend on the run.
void prepare(Call& call, CallingThread& calling, Run& run) {
  const RunRequest& request = call.request;
  Outcome& outcome = call.outcome;
  if (auto scaled = scaled_rate(request, run.steps())) outcome.warnings.push_back(*scaled);
  outcome.folder = run.location().path().string();
  outcome.to_go_on = call_to_go_on(call, run);
  outcome.model_name = request.run.model.text();
  *outcome.trained_on = {.run = request.run,
                         .parts = {.loss = call.parts.loss,
                                   .inputs = call.parts.inputs,
                                   .targets = call.parts.targets},
                         .has_real_targets = run.workload().has_real_targets()};
  outcome.listener = run.trainer().add_observer<Listener>(calling, call.callbacks, run);
  if (request.run.monitor.empty()) return;
  run.trainer().add_observer<Monitor>(
      request.run.monitor, request.run.monitor_every,
      [listener = outcome.listener](const StepPlan& step,
                                    std::span<const TensorStatistics> tensors) {
        listener->keep(step, tensors);
      });
}

// A host in an elastic run. Ctrl-C stops the run on all hosts.
class PythonHost final : public HostClient {
 public:
  PythonHost(Call& call, CallingThread& calling, PythonOwner& owner)
      : call_(call),
        calling_(calling),
        owner_(owner),
        workload_(load_workload(call.request.run, call.parts)),
        steps_(parts_of(call, calling, {}, {}).steps) {}

  void train() {
    const app::HostArguments& hosts = *call_.request.hosts;
    HostDriver driver(call_.request, *workload_,
                      steps_ ? *steps_ : load_run_steps(call_.request.run), elastic_hosts,
                      {.meeting = app::meeting_of(hosts), .least = hosts.least, .most = hosts.most},
                      *this);
    const ElasticOutcome outcome = driver.execute();
    if (driver.session() == nullptr) throw Error(ends_of(outcome));
    keep(outcome, driver.writes());
  }

 private:
  [[nodiscard]] RunLocation location_of_first() override { return location_in(call_, owner_); }
  [[nodiscard]] std::unique_ptr<HostSession> session_in(RunLocation location,
                                                        std::shared_ptr<Hosts> hosts,
                                                        RunRole role) override;
  [[nodiscard]] bool wants_to_end() override { return owner_.wants_to_stop(); }
  [[nodiscard]] bool wants_to_leave() override { return false; }
  void warn(const std::string& text) override { owner_.warn(text); }

  // Returns why this host has no result of its own.
  static std::string ends_of(const ElasticOutcome& outcome) {
    return fmt::format("hosts: the run {}{}", outcome.was_stopped ? "was stopped" : "has ended",
                       outcome.end == ElasticOutcome::End::stopped_as_newcomer
                           ? " before this host took part"
                           : " on the other hosts, without this one");
  }
  void keep(const ElasticOutcome& ended, bool writes);

  Call& call_;
  CallingThread& calling_;
  PythonOwner& owner_;
  std::shared_ptr<const Workload> workload_;
  std::optional<Run::Steps> steps_;
  // The session of the driver's that was made last.
  QuietSession* session_ = nullptr;
};

std::unique_ptr<HostSession> PythonHost::session_in(RunLocation location,
                                                    std::shared_ptr<Hosts> hosts, RunRole role) {
  SessionParts parts = parts_of(call_, calling_, workload_, std::move(location));
  parts.hosts = std::move(hosts);
  parts.follows = role == RunRole::follower;
  if (parts.follows) parts.progress.reset();
  auto session = std::make_unique<QuietSession>(call_.request, std::move(parts), owner_);
  // A successor continues the training of this host; others take over that of another one.
  const auto before = role == RunRole::successor ? call_.outcome.listener : nullptr;
  prepare(call_, calling_, session->run());
  if (before) call_.outcome.listener->continue_from(*before);
  session_ = session.get();
  return session;
}

void PythonHost::keep(const ElasticOutcome& ended, bool writes) {
  using End = ElasticOutcome::End;
  Outcome& outcome = call_.outcome;
  if (ended.end == End::unwritten) {
    throw OutputError(fmt::format("no host can write the run: {}{}", ended.reason,
                                  ended.kept.empty() ? "" : "; a copy is " + ended.kept));
  }
  if (ended.end == End::missed_end) throw Error(ends_of(ended));
  outcome.session = session_->outcome();
  if (ended.end != End::trained) outcome.session.end = RunEnd::paused;
  if (outcome.session.end == RunEnd::paused && !owner_.wants_to_stop()) {
    outcome.session.reason = "another host has stopped the run";
  }
  if (!writes) outcome.folder.clear();
  put_weights(session_->run(), outcome);
}

void train_as_host(Call& call, CallingThread& calling, PythonOwner& owner) {
  if (!call.request.out && !call.request.resume) {
    throw Error("hosts: a host may have to write the run; accepted: with out, or resume");
  }
  hosts_detail::HostFolder::remove_leftovers();
  PythonHost(call, calling, owner).train();
}

void train_in(Call& call, CallingThread& calling) {
  check(call.request);
  if (const auto& rule = call.request.rule) {
    rule->calling = &calling;
    rule->sees_norms = call.request.run.log_noise;
  }
  calling.around_calls([&call] { call.generator.swap(); });
  PythonOwner owner(call, calling);
  Outcome& outcome = call.outcome;
  try {
    if (call.request.hosts) return train_as_host(call, calling, owner);
    RunLocation location = location_in(call, owner);
    Session session(
        call.request,
        parts_of(call, calling, load_workload(call.request.run, call.parts), std::move(location)),
        owner);
    prepare(call, calling, session.run());
    outcome.session = session.execute();
    put_weights(session.run(), outcome);
    const bool is_kept = !outcome.folder.empty();
    if (outcome.session.end == RunEnd::paused && !is_kept && session.run().trainer().has_state()) {
      outcome.unfinished = std::make_shared<Unfinished>(
          Unfinished{.state = session.run().trainer().state(), .steps = call.parts.steps});
    }
  } catch (const std::exception& error) {
    // An error after Ctrl-C or an exception of a callback, which the caller gets, is a warning.
    if (!calling.has_failed()) throw;
    outcome.warnings.push_back(fmt::format("while the training was ending: {}", error.what()));
  }
}

void take_tensors(const py::dict& parts, const char* key, Tensors& inputs, Tensors& targets) {
  const py::object value = parts[key];
  if (value.is_none()) return;
  const auto lists = value.cast<std::pair<py::list, py::list>>();
  inputs = tensors_in(lists.first);
  targets = tensors_in(lists.second);
}

OwnParts own_parts(const py::object& object) {
  OwnParts parts;
  if (object.is_none()) return parts;
  const auto dict = object.cast<py::dict>();
  if (const py::object model = dict["model"]; !model.is_none()) {
    parts.model = std::string(model.cast<py::bytes>());
    parts.transient = dict["transient"].cast<std::vector<std::string>>();
  }
  if (const py::object loss = dict["loss"]; !loss.is_none()) {
    parts.loss = std::string(loss.cast<py::bytes>());
  }
  take_tensors(dict, "train", parts.inputs, parts.targets);
  take_tensors(dict, "test", parts.test_inputs, parts.test_targets);
  parts.steps = steps_in(dict["steps"]);
  return parts;
}

py::dict dict_of_outcome(const Outcome& outcome, const py::object& failure) {
  using namespace py::literals;
  const Records& records = outcome.listener->records();
  const SessionOutcome& session = outcome.session;
  const py::object model = outcome.model ? py::object(py::bytes(*outcome.model)) : py::none();
  py::dict weights;
  for (const auto& [name, tensors] : outcome.weights) weights[py::str(name)] = dict_of(tensors);
  return py::dict(
      "end"_a = choice_name(kRunEnds, session.end), "reason"_a = session.reason,
      "failure"_a = failure, "warnings"_a = outcome.warnings,
      "summary"_a = session.summary ? to_json(*session.summary) : "", "folder"_a = outcome.folder,
      "checkpoint"_a = session.checkpoint ? session.checkpoint->string() : "",
      "to_go_on"_a = outcome.to_go_on, "model_name"_a = outcome.model_name,
      "has_real_targets"_a = outcome.trained_on->has_real_targets,
      "steps"_a = records.steps.columns(), "epochs"_a = records.epochs.columns(),
      "minibatches"_a = records.minibatches.columns(), "faults"_a = records.faults.columns(),
      "monitored"_a = records.monitored.columns(), "is_whole"_a = outcome.is_whole,
      "weights"_a = weights, "model"_a = model, "best_epoch"_a = outcome.best_epoch,
      "trained_on"_a = outcome.trained_on, "unfinished"_a = outcome.unfinished);
}

}  // namespace

py::list list_of_first_inputs(const Request& request, const py::object& parts, bool float64) {
  const OwnParts own = own_parts(parts);
  Tensors inputs;
  {
    const py::gil_scoped_release free;
    check(request);
    inputs = first_inputs(request.run, own, float64 ? at::kDouble : at::kFloat);
  }
  return list_of(inputs);
}

py::dict train(const Request& request, const py::object& parts, const py::dict& callbacks) {
  const auto call = std::make_shared<Call>();
  call->request = request;
  call->parts = own_parts(parts);
  if (request.unfinished && !call->parts.steps) call->parts.steps = request.unfinished->steps;
  call->callbacks = callbacks_of(callbacks);
  const IntraOpThreads threads;
  py::object failure = py::none();
  const WorkEnd end = run_beside_python(
      [call](CallingThread& calling) {
        try {
          train_in(*call, calling);
        } catch (...) {
          rethrow_for_users();
        }
      },
      handle_signals);
  try {
    if (end.failure) std::rethrow_exception(end.failure);
  } catch (const py::error_already_set& error) {
    // The exception is rethrown if there is nothing to keep: it came before training, or training
    // continues.
    if (end.abandoned || call->outcome.listener == nullptr) throw;
    failure = error.value();
    if (error.trace()) failure.attr("__traceback__") = error.trace();
  }
  return dict_of_outcome(call->outcome, failure);
}

}  // namespace rubato::python
