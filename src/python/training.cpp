#include "python/training.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <rubato/core/error.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/run/run.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/train/monitor.hpp>

#include "app/planned_faults.hpp"
#include "app/run_messages.hpp"
#include "app/train_arguments.hpp"
#include "app/way_out.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "python/beside_python.hpp"
#include "python/errors.hpp"
#include "python/own_parts.hpp"
#include "python/table.hpp"
#include "python/tensors.hpp"
#include "python/traces.hpp"
#include "report/record_numbers.hpp"
#include "torch/generator_keeper.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

// The one training of a process: libtorch's number of threads and the kernels are the process's.
enum class Turn { free, taken, over };
std::atomic<Turn> the_turn{Turn::free};
std::atomic<bool> asked_to_stop{false};
// That has trained first; 0 is none.
std::atomic<pid_t> the_process{0};

class TrainingTurn {
 public:
  TrainingTurn() {
    pid_t none = 0;
    if (!the_process.compare_exchange_strong(none, getpid()) && none != getpid()) {
      throw Error(
          "this process was forked from one that has trained, whose threads it has not; accepted: "
          "a new process (multiprocessing.get_context(\"spawn\"))");
    }
    Turn expected = Turn::free;
    if (the_turn.compare_exchange_strong(expected, Turn::taken)) return;
    throw Error(expected == Turn::over
                    ? "the interpreter is going; accepted: a training before that"
                    : "another training is under way in this process; accepted: one after the "
                      "other, or a process for each");
  }
  ~TrainingTurn() {
    Turn expected = Turn::taken;
    the_turn.compare_exchange_strong(expected, Turn::free);
  }
  TrainingTurn(const TrainingTurn&) = delete;
  TrainingTurn& operator=(const TrainingTurn&) = delete;
};

// Models with a name have float32 parameters, whatever torch.set_default_dtype() says.
class Float32ByDefault {
 public:
  Float32ByDefault() : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
  }
  ~Float32ByDefault() { c10::set_default_dtype(before_); }
  Float32ByDefault(const Float32ByDefault&) = delete;
  Float32ByDefault& operator=(const Float32ByDefault&) = delete;

 private:
  caffe2::TypeMeta before_;
};

// What Python's callbacks are, to be called on the calling thread alone.
struct Callbacks {
  py::object on_step{};
  py::object on_epoch{};
};

// Ends a training that nobody waits for any more.
class Abandoned : public Error {
 public:
  Abandoned() : Error("the training was abandoned") {}
};

// Keeps what happens, tells the callbacks, and ends training where they ask for it.
class Listener final : public Observer {
 public:
  Listener(CallingThread& calling, const Callbacks& callbacks)
      : calling_(calling),
        callbacks_(callbacks),
        hears_steps_(!callbacks.on_step.is_none()),
        hears_epochs_(!callbacks.on_epoch.is_none()) {}

  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override {
    static_cast<void>(training);
    for (const FaultRecord& fault : faults) faults_.add(row_of(fault, step.index, cores_left));
  }
  void on_step(Training& training, const StepRecord& step) override {
    // Before it is evaluated, and before there is a checkpoint.
    require_not_abandoned();
    const Row row = row_of(step);
    steps_.add(row);
    for (const MinibatchRecord& minibatch : step.minibatches) {
      minibatches_.add(row_of(minibatch, step.plan.index));
    }
    if (!hears_steps_) return;
    tell(training, callbacks_.on_step, "on_step returned False", [&] {
      py::dict dict = dict_of(row);
      dict["substeps"] = substeps_of(step);
      return dict;
    });
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    const Row row = row_of(epoch);
    epochs_.add(row);
    if (!hears_epochs_) return;
    tell(training, callbacks_.on_epoch, "on_epoch returned False", [&] { return dict_of(row); });
  }
  void between_steps(Training& training) override {
    require_not_abandoned();
    if (asked_to_stop || calling_.has_failed()) training.pause();
  }
  // For a Monitor.
  void keep(const StepPlan& step, std::span<const TensorStatistics> tensors) {
    for (const TensorStatistics& tensor : tensors) monitored_.add(row_of(tensor, step.index));
  }

  [[nodiscard]] const Table& steps() const { return steps_; }
  [[nodiscard]] const Table& epochs() const { return epochs_; }
  [[nodiscard]] const Table& minibatches() const { return minibatches_; }
  [[nodiscard]] const Table& faults() const { return faults_; }
  [[nodiscard]] const Table& monitored() const { return monitored_; }

 private:
  void require_not_abandoned() {
    if (calling_.is_abandoned()) throw Abandoned();
  }
  template <class Make>
  void tell(Training& training, const py::object& callback, const char* reason, const Make& make) {
    bool stop = false;
    static_cast<void>(calling_.run([&] {
      // Only False itself: most functions return None.
      stop = callback(make()).ptr() == Py_False;
    }));
    if (stop) training.stop(reason);
  }

  CallingThread& calling_;
  const Callbacks& callbacks_;
  bool hears_steps_;
  bool hears_epochs_;
  Table steps_;
  Table epochs_;
  Table minibatches_;
  Table faults_;
  Table monitored_;
};

// What a training came to, without anything of Python's.
struct Outcome {
  std::string end{};
  std::string reason{};
  std::string missed_target{};
  std::vector<std::string> warnings{};
  std::string summary{};
  std::string folder{};
  std::string checkpoint{};
  std::string model_name{};
  bool has_real_targets = false;
  std::shared_ptr<Listener> listener{};
  std::vector<NamedTensor> weights{};
  // TorchScript with the weights, where the model is that.
  std::optional<std::string> model{};
  std::optional<std::vector<NamedTensor>> best{};
  std::int64_t best_epoch = 0;
  // Whether there are weights.
  bool is_whole = false;
};

// A training with all that it uses: where it is abandoned, it ends with this.
struct Session {
  // Free when all else has gone.
  TrainingTurn turn{};
  // A training seeds it.
  GeneratorKeeper generator{};
  std::vector<std::string> arguments{};
  OwnParts parts{};
  Callbacks callbacks{};
  Outcome outcome{};
};

std::vector<NamedTensor> weights_of(std::span<const NamedArray> parameters,
                                    std::span<const NamedArray> buffers) {
  std::vector<NamedTensor> weights = copies_of(parameters);
  for (NamedTensor& buffer : copies_of(buffers)) weights.push_back(std::move(buffer));
  return weights;
}

RunLocation location_of(const app::TrainArguments& arguments, std::vector<std::string>& warnings) {
  if (arguments.resume) {
    RunLocation location =
        RunLocation::resume(*arguments.resume, arguments.run, arguments.checkpoint);
    for (const std::string& why : location.rejected()) warnings.push_back(why);
    return location;
  }
  if (arguments.out) return RunLocation::create(*arguments.out);
  return {};
}

// What is written to a run's folder and nowhere else.
void require_folder(const app::TrainArguments& arguments) {
  if (arguments.resume || arguments.out) return;
  for (const char* name :
       {"checkpoint-every", "keep", "tensorboard", "histograms", "histograms-every"}) {
    const bool is_off = name == std::string_view("tensorboard") && !arguments.run.tensorboard;
    if (!arguments.given.contains(name) || is_off) continue;
    throw Error(fmt::format("--{}: the run is kept nowhere; accepted: with out", name));
  }
}

std::shared_ptr<const Workload> loaded(const RunConfiguration& configuration, const OwnParts& parts,
                                       std::vector<std::string>& warnings) {
  auto workload = load_workload(configuration, parts);
  if (std::string slow = workload->warning(); !slow.empty()) warnings.push_back(std::move(slow));
  return workload;
}

void put_end(Run& run, const RunOutcome& of, const app::PlannedFaults& faults, Outcome& outcome) {
  if (of.end == RunOutcome::End::paused) {
    outcome.end = "interrupted";
    if (!run.location().path().empty()) outcome.checkpoint = run.write_checkpoint().string();
    return;
  }
  outcome.end = of.end == RunOutcome::End::diverged ? "diverged" : "completed";
  outcome.reason = of.reason;
  outcome.summary = to_json(*of.summary);
  for (std::string& line : faults.missed(of.summary->result.steps)) {
    outcome.warnings.push_back(std::move(line));
  }
  if (of.end == RunOutcome::End::completed) {
    outcome.missed_target =
        app::missed_target(run.configuration(), of.summary->result).value_or("");
  }
}

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer threads need less";

// Throws what is being handled, with what is left of the run where that can be said.
[[noreturn]] void rethrow_with_way_out(Run& run) {
  const std::string to_go_on =
      fmt::format("to go on: rubato.train(resume='{}')", run.location().path().string());
  try {
    throw;
  } catch (const OutputError& error) {
    throw OutputError(error.what() + app::way_out(run, to_go_on));
  } catch (const std::exception& error) {
    const auto memory = memory_failure(error, kLessMemory);
    if (!memory) throw;
    throw MemoryError(*memory + app::way_out_of_step(run, to_go_on));
  }
}

void put_weights(Run& run, Outcome& outcome) {
  const Trainer& trainer = run.trainer();
  outcome.weights = weights_of(trainer.parameters(), trainer.buffers());
  outcome.model = run.workload().model_file(trainer.parameters(), trainer.buffers());
  if (const BestWeights* const best = run.best(); best != nullptr && best->value()) {
    outcome.best = weights_of(best->parameters(), best->buffers());
    outcome.best_epoch = best->epoch().value();
  }
  outcome.is_whole = true;
}

// What it throws after Ctrl-C or an exception of a callback, which the caller hears of, is a
// warning.
void execute(Run& run, const app::PlannedFaults& faults, CallingThread& calling, Outcome& outcome) {
  try {
    try {
      put_end(run, run.execute(), faults, outcome);
      put_weights(run, outcome);
    } catch (...) {
      rethrow_with_way_out(run);
    }
  } catch (const std::exception& error) {
    if (!calling.has_failed()) throw;
    outcome.warnings.push_back(fmt::format("when the training was to end: {}", error.what()));
  }
}

void train_in(Session& session, CallingThread& calling) {
  Outcome& outcome = session.outcome;
  const auto arguments = app::parse_train_arguments(session.arguments);
  if (!arguments) throw Error("the help is no training; accepted: help(rubato.train)");
  require_folder(*arguments);
  RunLocation location = location_of(*arguments, outcome.warnings);
  std::optional<Float32ByDefault> float32;
  if (session.parts.model.empty()) float32.emplace();
  std::optional<Run::Steps> steps = std::move(session.parts.steps);
  if (steps) steps = with_end(*std::move(steps), arguments->run.on_trace_end);
  Run run(arguments->run, loaded(arguments->run, session.parts, outcome.warnings),
          std::move(location), nullptr, std::move(steps));
  if (std::string difference = run.warning(); !difference.empty()) {
    outcome.warnings.push_back(std::move(difference));
  }
  for (std::string& line : app::idle_arguments(*arguments, run.steps(), /*redrawn=*/false)) {
    outcome.warnings.push_back(std::move(line));
  }
  outcome.folder = run.location().path().string();
  outcome.model_name = arguments->run.model;
  outcome.has_real_targets = run.workload().has_real_targets();
  Trainer& trainer = run.trainer();
  const auto faults = trainer.add_observer<app::PlannedFaults>(trainer.options().faults.planned,
                                                               StepIndex{trainer.result().steps});
  outcome.listener = trainer.add_observer<Listener>(calling, session.callbacks);
  if (!arguments->run.monitor.empty()) {
    trainer.add_observer<Monitor>(
        arguments->run.monitor, arguments->run.monitor_every,
        [listener = outcome.listener](const StepPlan& step,
                                      std::span<const TensorStatistics> tensors) {
          listener->keep(step, tensors);
        });
  }
  execute(run, *faults, calling, outcome);
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
  }
  if (const py::object loss = dict["loss"]; !loss.is_none()) {
    parts.loss = std::string(loss.cast<py::bytes>());
  }
  take_tensors(dict, "train", parts.inputs, parts.targets);
  take_tensors(dict, "test", parts.test_inputs, parts.test_targets);
  parts.steps = steps_in(dict["steps"]);
  return parts;
}

py::object model_of(const Outcome& outcome) {
  if (!outcome.model) return py::none();
  return py::bytes(*outcome.model);
}

py::object best_of(const Outcome& outcome) {
  if (!outcome.best) return py::none();
  return dict_of(*outcome.best);
}

py::dict dict_of_outcome(const Outcome& outcome, const py::object& failure) {
  using namespace py::literals;
  const Listener& listener = *outcome.listener;
  return py::dict(
      "end"_a = outcome.end, "reason"_a = outcome.reason, "missed_target"_a = outcome.missed_target,
      "failure"_a = failure, "warnings"_a = outcome.warnings, "summary"_a = outcome.summary,
      "folder"_a = outcome.folder, "checkpoint"_a = outcome.checkpoint,
      "model_name"_a = outcome.model_name, "has_real_targets"_a = outcome.has_real_targets,
      "steps"_a = listener.steps().columns(), "epochs"_a = listener.epochs().columns(),
      "minibatches"_a = listener.minibatches().columns(), "faults"_a = listener.faults().columns(),
      "monitored"_a = listener.monitored().columns(), "is_whole"_a = outcome.is_whole,
      "weights"_a = dict_of(outcome.weights), "model"_a = model_of(outcome),
      "best"_a = best_of(outcome), "best_epoch"_a = outcome.best_epoch);
}

}  // namespace

py::list first_inputs(const std::vector<std::string>& texts, const py::object& parts,
                      bool float64) {
  const OwnParts own = own_parts(parts);
  Tensors inputs;
  {
    const py::gil_scoped_release free;
    const auto arguments = app::parse_train_arguments(texts);
    if (!arguments) throw Error("the help is no training; accepted: help(rubato.train)");
    inputs = first_inputs(arguments->run, own, float64 ? at::kDouble : at::kFloat);
  }
  return list_of(inputs);
}

py::dict train(const std::vector<std::string>& arguments, const py::object& parts,
               const py::object& on_step, const py::object& on_epoch) {
  const auto session = std::make_shared<Session>();
  session->arguments = arguments;
  session->parts = own_parts(parts);
  session->callbacks = {.on_step = on_step, .on_epoch = on_epoch};
  const IntraOpThreads threads;
  py::object failure = py::none();
  const WorkEnd end = run_beside_python(
      [session](CallingThread& calling) {
        try {
          train_in(*session, calling);
        } catch (...) {
          rethrow_for_users();
        }
      },
      [] {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      });
  try {
    if (end.failure) std::rethrow_exception(end.failure);
  } catch (const py::error_already_set& error) {
    // Not where there is nothing to keep: it came before training, or training goes on.
    if (end.abandoned || session->outcome.listener == nullptr) throw;
    failure = error.value();
    if (error.trace()) failure.attr("__traceback__") = error.trace();
  }
  return dict_of_outcome(session->outcome, failure);
}

void end_training() {
  // A process that was forked has no training, whatever it has inherited.
  if (const pid_t trained = the_process; trained != 0 && trained != getpid()) return;
  asked_to_stop = true;
  const py::gil_scoped_release free;
  Turn expected = Turn::free;
  while (!the_turn.compare_exchange_weak(expected, Turn::over) && expected != Turn::over) {
    expected = Turn::free;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace rubato::python
