#include "python/training.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <rubato/core/error.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/run/run.hpp>
#include <rubato/torch/environment.hpp>

#include "app/planned_faults.hpp"
#include "app/run_folder_name.hpp"
#include "app/run_messages.hpp"
#include "app/train_arguments.hpp"
#include "config/engine.hpp"
#include "python/beside_python.hpp"
#include "python/errors.hpp"
#include "python/own_parts.hpp"
#include "python/table.hpp"
#include "python/tensors.hpp"

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

// Leaves libtorch's generator as it was: a training seeds it.
class KeptGenerator {
 public:
  KeptGenerator()
      : generator_(at::globalContext().defaultGenerator(at::kCPU)),
        state_(generator_.get_state()) {}
  ~KeptGenerator() { generator_.set_state(state_); }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

// What Python's callbacks are, to be called on the calling thread alone.
struct Callbacks {
  const py::object& on_step;
  const py::object& on_epoch;
};

// Keeps what happens, tells the callbacks, and ends training where they ask for it.
class Listener final : public Observer {
 public:
  Listener(CallingThread& calling, Callbacks callbacks)
      : calling_(calling),
        callbacks_(callbacks),
        hears_steps_(!callbacks.on_step.is_none()),
        hears_epochs_(!callbacks.on_epoch.is_none()) {}

  void on_step(Training& training, const StepRecord& step) override {
    const Row row = row_of(step);
    steps_.add(row);
    for (const MinibatchRecord& minibatch : step.minibatches) {
      minibatches_.add(row_of(minibatch, step.plan.index.value()));
    }
    if (hears_steps_) tell(training, callbacks_.on_step, row, "on_step returned False");
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    const Row row = row_of(epoch);
    epochs_.add(row);
    if (hears_epochs_) tell(training, callbacks_.on_epoch, row, "on_epoch returned False");
  }
  void between_steps(Training& training) override {
    if (asked_to_stop || calling_.has_failed()) training.pause();
  }

  [[nodiscard]] const Table& steps() const { return steps_; }
  [[nodiscard]] const Table& epochs() const { return epochs_; }
  [[nodiscard]] const Table& minibatches() const { return minibatches_; }

 private:
  void tell(Training& training, const py::object& callback, const Row& row, const char* reason) {
    bool stop = false;
    static_cast<void>(calling_.run([&] {
      // Only False itself: most functions return None.
      stop = callback(dict_of(row)).ptr() == Py_False;
    }));
    if (stop) training.stop(reason);
  }

  CallingThread& calling_;
  Callbacks callbacks_;
  bool hears_steps_;
  bool hears_epochs_;
  Table steps_;
  Table epochs_;
  Table minibatches_;
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
  std::shared_ptr<Listener> listener{};
  std::vector<NamedTensor> weights{};
  // TorchScript with the weights, where the model is that.
  std::optional<std::string> model{};
  std::optional<std::vector<NamedTensor>> best{};
  std::int64_t best_epoch = 0;
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
  for (const char* name : {"checkpoint-every", "keep", "monitor", "monitor-every"}) {
    if (!arguments.given.contains(name)) continue;
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

Outcome trained(const std::vector<std::string>& texts, const OwnParts& parts,
                CallingThread& calling, Callbacks callbacks) {
  Outcome outcome;
  const auto arguments = app::parse_train_arguments(texts);
  if (!arguments) throw Error("the help is no training; accepted: help(rubato.train)");
  require_folder(*arguments);
  RunLocation location = location_of(*arguments, outcome.warnings);
  std::optional<Float32ByDefault> float32;
  if (parts.model.empty()) float32.emplace();
  Run run(arguments->run, loaded(arguments->run, parts, outcome.warnings), std::move(location));
  if (std::string difference = run.warning(); !difference.empty()) {
    outcome.warnings.push_back(std::move(difference));
  }
  for (std::string& line : app::idle_arguments(*arguments, run.steps(), /*redrawn=*/false)) {
    outcome.warnings.push_back(std::move(line));
  }
  outcome.folder = run.location().path().string();
  Trainer& trainer = run.trainer();
  const auto faults = trainer.add_observer<app::PlannedFaults>(trainer.options().faults.planned,
                                                               StepIndex{trainer.result().steps});
  outcome.listener = trainer.add_observer<Listener>(calling, callbacks);
  put_end(run, run.execute(), *faults, outcome);
  outcome.weights = weights_of(trainer.parameters(), trainer.buffers());
  outcome.model = run.workload().model_file(trainer.parameters(), trainer.buffers());
  if (const BestWeights* const best = run.best(); best != nullptr && best->value()) {
    outcome.best = weights_of(best->parameters(), best->buffers());
    outcome.best_epoch = best->epoch().value();
  }
  return outcome;
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
  return py::dict("end"_a = outcome.end, "reason"_a = outcome.reason,
                  "missed_target"_a = outcome.missed_target, "failure"_a = failure,
                  "warnings"_a = outcome.warnings, "summary"_a = outcome.summary,
                  "folder"_a = outcome.folder, "checkpoint"_a = outcome.checkpoint,
                  "steps"_a = outcome.listener->steps().columns(),
                  "epochs"_a = outcome.listener->epochs().columns(),
                  "minibatches"_a = outcome.listener->minibatches().columns(),
                  "weights"_a = dict_of(outcome.weights), "model"_a = model_of(outcome),
                  "best"_a = best_of(outcome), "best_epoch"_a = outcome.best_epoch);
}

}  // namespace

py::dict train(const std::vector<std::string>& arguments, const py::object& parts,
               const py::object& on_step, const py::object& on_epoch) {
  const TrainingTurn turn;
  // Goes when it is done, here and with the GIL: the data may be numpy's.
  const OwnParts own = own_parts(parts);
  const IntraOpThreads threads;
  const KeptGenerator generator;
  Outcome outcome;
  py::object failure = py::none();
  try {
    run_beside_python(
        [&](CallingThread& calling) {
          try {
            outcome = trained(arguments, own, calling, {on_step, on_epoch});
          } catch (...) {
            rethrow_for_users();
          }
        },
        [] {
          if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        });
  } catch (const py::error_already_set& error) {
    // Not where it came before there was anything to keep.
    if (outcome.listener == nullptr) throw;
    failure = error.value();
    if (error.trace()) failure.attr("__traceback__") = error.trace();
  }
  return dict_of_outcome(outcome, failure);
}

void end_training() {
  asked_to_stop = true;
  const py::gil_scoped_release free;
  Turn expected = Turn::free;
  while (!the_turn.compare_exchange_weak(expected, Turn::over) && expected != Turn::over) {
    expected = Turn::free;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace rubato::python
