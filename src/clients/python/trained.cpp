// A question about a trained model is answered by a workload whose model is the TorchScript that
// Python passes, and whose test set is the samples asked about. samples_like() reads one tensor of
// inputs by the functions that read data files, and gives it the shape, the type and the
// normalisation of the training data; several tensors are taken as they are. A question needs the
// TrainingTurn, as a training does, because libtorch's settings belong to the process. Question and
// answer are shared with the thread that computes, as an interrupted call leaves it behind.

#include <functional>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/throw_error.hpp"
#include "calling_thread.hpp"
#include "conversions.hpp"
#include "libtorch/model/shared_state.hpp"
#include "libtorch/torch/guards.hpp"
#include "libtorch/torch/sample_tensors.hpp"
#include "libtorch/torch_run/libtorch_workload.hpp"
#include "loop/data/data_files.hpp"
#include "loop/train/record_schemas.hpp"
#include "module.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_data.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;

// Samples, and the model that is asked about them.
struct Question {
  std::string model{};
  Tensors inputs{};
  // Targets; empty if there are none.
  Tensors targets{};
};

void require_alike(const SampleRows& asked, const SampleRows& trained, const char* what) {
  if (asked.type() == trained.type() && asked.shape() == trained.shape()) return;
  throw_error("{}: samples are {} of shape [{}]; accepted: {} of [{}], as in training", what,
              name_of(asked.type()), fmt::join(asked.shape(), ", "), name_of(trained.type()),
              fmt::join(trained.shape(), ", "));
}

// True if its model is TorchScript, which takes samples in the shape that they have.
bool has_script(const RunConfiguration& run) {
  return run.model->is_own() || run.model->script.has_value();
}

// Zeros of the type and shape of the targets in training.
NumberArray no_targets(const SampleRows& trained, std::int64_t samples) {
  std::vector<std::int64_t> shape{samples};
  shape.insert(shape.end(), trained.shape().begin(), trained.shape().end());
  const auto zeros = std::make_shared<const std::string>(
      static_cast<std::size_t>(samples) * trained.row_bytes(), '\0');
  return {.type = trained.type(), .shape = std::move(shape), .bytes = *zeros, .owner = zeros};
}

// One tensor of inputs, read as training has read its own.
std::shared_ptr<const Dataset> samples_like(const TrainedOn& on, const Question& question,
                                            c10::ScalarType type) {
  const DataSets data = data_sets(on.run, on.parts);
  const at::Tensor& inputs = question.inputs.front();
  std::map<std::string, NumberArray> arrays;
  arrays["x"] = array_of(inputs, "x");
  arrays["y"] = question.targets.empty() ? no_targets(data.train.targets, inputs.size(0))
                                         : array_of(question.targets.front(), "y");
  const SampleSet asked = tensor_samples(arrays, "data", ignored_targets(on.run, on.parts)).train;
  require_alike(asked.inputs, data.train.inputs, "inputs");
  if (is_real(asked.targets.type()) != is_real(data.train.targets.type())) {
    throw_error("targets: they are {}; accepted: {}, as in training", name_of(asked.targets.type()),
                name_of(data.train.targets.type()));
  }
  SampleTensors as{.input_shape = data.train.inputs.shape(),
                   .input_type = data.inputs == InputKind::tokens ? at::kLong : type,
                   .real_target_type = type};
  const bool is_sequence = data.inputs == InputKind::tokens && as.input_shape.size() == 1;
  if (!has_script(on.run) && !is_sequence) {
    const DataShape shape = shape_of(data);
    as.input_shape = {shape.channels, shape.height, shape.width};
  }
  return make_dataset(data, asked, std::move(as), /*room=*/0);
}

// Several tensors are taken as they are.
std::shared_ptr<const Dataset> samples_of(const TrainedOn& on, Question question) {
  if (question.inputs.size() != on.parts.inputs.size()) {
    throw_error("inputs: {} tensors; accepted: {}, as in training", question.inputs.size(),
                on.parts.inputs.size());
  }
  const std::int64_t samples = question.inputs.front().size(0);
  if (question.targets.empty()) {
    for (const at::Tensor& target : on.parts.targets) {
      std::vector<std::int64_t> shape = target.sizes().vec();
      shape.front() = samples;
      question.targets.push_back(at::zeros(shape, target.options()));
    }
  }
  return dataset_of(question.inputs, std::move(question.targets));
}

// A workload with the samples as its test set.
std::shared_ptr<const Workload> workload_of(const TrainedOn& on, const Question& question,
                                            RunConfiguration& run) {
  if (on.parts.loss.empty() && !on.has_real_targets) run.loss = loss_of(on.run);
  run.model = kOwn;
  run.data = kOwn;
  run.validation.reset();
  WorkloadParts parts{.loss = own_loss(run, on.parts)};
  parts.model = read_script(question.model, "model");
  const c10::ScalarType type = sort_tensors(make_model(*parts.model)).type;
  const bool several = on.parts.inputs.size() > 1 || on.parts.targets.size() > 1;
  parts.test = several ? samples_of(on, question) : samples_like(on, question, type);
  // No sample is trained on.
  parts.train = parts.test;
  return torch_workload(run, std::move(parts));
}

// Answers on a thread of its own, as training does, so that modes that the calling thread has
// switched on do not change any bit.
template <class Answer>
Answer answer_to(const std::shared_ptr<const TrainedOn>& on, Question asked,
                 Answer (*ask)(const Workload& workload, const RunConfiguration& run)) {
  const IntraOpThreads threads;
  const auto answer = std::make_shared<Answer>();
  // Python's objects are destroyed where the GIL is held.
  const auto question = std::make_shared<const Question>(std::move(asked));
  const WorkEnd end = run_beside_python(
      [on, question, answer, ask](CallingThread& /*none*/) {
        const TrainingTurn turn;
        // Making the model seeds libtorch's generator.
        const GeneratorKeeper generator;
        try {
          RunConfiguration run = evaluation_configuration(on->run, {});
          const auto workload = workload_of(*on, *question, run);
          *answer = ask(*workload, run);
        } catch (...) {
          rethrow_for_users();
        }
      },
      handle_signals);
  if (end.failure) std::rethrow_exception(end.failure);
  return std::move(*answer);
}

using OnTrained = std::shared_ptr<TrainedOn>;

py::list predict(const OnTrained& on, const py::bytes& model, const py::list& inputs) {
  const auto outputs = answer_to<std::vector<NamedTensor>>(
      on, {.model = std::string(model), .inputs = tensors_in(inputs)},
      [](const Workload& workload, const RunConfiguration& run) {
        return copies_of(rubato::predict(workload, run, Prediction::outputs).arrays());
      });
  Tensors tensors;
  for (const NamedTensor& output : outputs) tensors.push_back(output.tensor);
  return list_of(tensors);
}

py::dict evaluate(const OnTrained& on, const py::bytes& model, const py::list& inputs,
                  const py::list& targets) {
  const auto evaluation = answer_to<Evaluation>(
      on,
      {.model = std::string(model), .inputs = tensors_in(inputs), .targets = tensors_in(targets)},
      [](const Workload& workload, const RunConfiguration& run) {
        return rubato::evaluate(workload, run);
      });
  // Metrics that were not measured are left out.
  Row row = row_of(evaluation_schema(), evaluation);
  std::erase_if(
      row, [](const Field& field) { return std::holds_alternative<std::monostate>(field.value); });
  return dict_of(row);
}

}  // namespace

void define_trained(py::module_& module) {
  static_cast<void>(py::class_<TrainedOn, OnTrained>(module, "TrainedOn"));
  module.def("predict", &predict);
  module.def("evaluate", &evaluate);
}

}  // namespace rubato::python
