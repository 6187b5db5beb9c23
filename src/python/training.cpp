#include "python/training.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/core/error.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/run/run.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/train/monitor.hpp>

#include "app/planned_faults.hpp"
#include "app/run_messages.hpp"
#include "app/train_arguments.hpp"
#include "app/way_out.hpp"
#include "config/run_option.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "python/beside_python.hpp"
#include "python/errors.hpp"
#include "python/listener.hpp"
#include "python/own_parts.hpp"
#include "python/table.hpp"
#include "python/tensors.hpp"
#include "python/traces.hpp"
#include "python/trained_on.hpp"
#include "python/turn.hpp"
#include "torch/generator_keeper.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

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

// What a training came to, without anything of Python's.
struct Outcome {
  std::string end{};
  std::string reason{};
  std::string missed_target{};
  std::vector<std::string> warnings{};
  std::string summary{};
  std::string folder{};
  std::string checkpoint{};
  // How the run goes on, where it has a folder: a call, as users write it.
  std::string to_go_on{};
  std::string model_name{};
  std::shared_ptr<TrainedOn> trained_on = std::make_shared<TrainedOn>();
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

// What has no name in the run's configuration has to be given again.
std::string call_to_go_on(const OwnParts& parts, const std::string& folder) {
  std::string own;
  if (!parts.model.empty()) own = "model, ";
  if (!parts.inputs.empty()) own += parts.model.empty() ? "data=data, " : "data, ";
  if (!parts.test_inputs.empty()) own += "validation=validation, ";
  if (!parts.loss.empty()) own += "loss=loss, ";
  return fmt::format("rubato.train({}resume='{}')", own, folder);
}

// What is written to a run's folder and nowhere else.
void require_folder(const app::TrainArguments& arguments) {
  if (arguments.resume || arguments.out) return;
  for (const RunOption& option : run_options()) {
    if (!option.needs_folder || !arguments.given.contains(option.name)) continue;
    if (option.text(arguments.run) == "false") continue;
    throw Error(fmt::format("--{}: the run is kept nowhere; accepted: with out", option.name));
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
  const bool diverged = of.end == RunOutcome::End::diverged;
  outcome.end = diverged ? "diverged" : "completed";
  outcome.reason = of.reason;
  outcome.summary = to_json(*of.summary);
  for (std::string& line : faults.missed(of.summary->result.steps)) {
    outcome.warnings.push_back(std::move(line));
  }
  if (!diverged) {
    outcome.missed_target =
        app::missed_target(run.configuration(), of.summary->result).value_or("");
  }
}

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer threads need less";

// Throws what is being handled, with what is left of the run where that can be said.
[[noreturn]] void rethrow_with_way_out(Run& run, const Outcome& outcome) {
  const std::string to_go_on = "to go on: " + outcome.to_go_on;
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
  if (const auto model = run.workload().model_file(trainer.parameters(), trainer.buffers())) {
    std::string& bytes = outcome.model.emplace();
    model([&bytes](std::string_view next) { bytes += next; });
  }
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
      rethrow_with_way_out(run, outcome);
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
  if (auto scaled = app::scaled_rate(*arguments, run.steps())) {
    outcome.warnings.push_back(*std::move(scaled));
  }
  outcome.folder = run.location().path().string();
  outcome.to_go_on = call_to_go_on(session.parts, outcome.folder);
  outcome.model_name = arguments->run.model.text();
  *outcome.trained_on = {.run = arguments->run,
                         .parts = {.loss = session.parts.loss,
                                   .inputs = session.parts.inputs,
                                   .targets = session.parts.targets},
                         .has_real_targets = run.workload().has_real_targets()};
  Trainer& trainer = run.trainer();
  const auto faults = trainer.add_observer<app::PlannedFaults>(trainer.options().faults.planned,
                                                               StepIndex{trainer.result().steps});
  outcome.listener = trainer.add_observer<Listener>(calling, session.callbacks, run);
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
      "to_go_on"_a = outcome.to_go_on, "model_name"_a = outcome.model_name,
      "has_real_targets"_a = outcome.trained_on->has_real_targets,
      "steps"_a = listener.steps().columns(), "epochs"_a = listener.epochs().columns(),
      "minibatches"_a = listener.minibatches().columns(), "faults"_a = listener.faults().columns(),
      "monitored"_a = listener.monitored().columns(), "is_whole"_a = outcome.is_whole,
      "weights"_a = dict_of(outcome.weights), "model"_a = model_of(outcome),
      "best"_a = best_of(outcome), "best_epoch"_a = outcome.best_epoch,
      "trained_on"_a = outcome.trained_on);
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
               const py::dict& callbacks) {
  const auto session = std::make_shared<Session>();
  session->arguments = arguments;
  session->parts = own_parts(parts);
  session->callbacks = {.on_step = callbacks["on_step"],
                        .on_epoch = callbacks["on_epoch"],
                        .on_epoch_begin = callbacks["on_epoch_begin"]};
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

}  // namespace rubato::python
