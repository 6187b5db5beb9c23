// One tensor of inputs and one of targets become arrays over the same memory and take the path of
// data in files, with its checks, normalisation and --validation. Data of several tensors become a
// Dataset directly; put_several() then lets hold_out() divide the numbers of the rows, so that the
// same samples are held out as for single tensors. Models and losses arrive as the bytes of
// TorchScript. Without any of these parts, the workload is the one that the command line would
// load, in either engine; with one, it needs libtorch.

#include "own_parts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/workload.hpp>

#include "libtorch/torch/sample_tensors.hpp"
#include "libtorch/torch_run/libtorch_workload.hpp"
#include "loop/data/data_files.hpp"
#include "runs/config/engine.hpp"
#include "runs/run/workload/run_data.hpp"

namespace rubato::python {

namespace {

DataSets data_of(const RunConfiguration& configuration, const OwnParts& parts) {
  std::map<std::string, NumberArray> arrays;
  arrays["x"] = array_of(parts.inputs.front(), "x");
  arrays["y"] = array_of(parts.targets.front(), "y");
  if (!parts.test_inputs.empty()) {
    arrays["x_test"] = array_of(parts.test_inputs.front(), "x_test");
    arrays["y_test"] = array_of(parts.test_targets.front(), "y_test");
  }
  DataSets data = tensor_samples(arrays, "data", ignored_targets(configuration, parts));
  data.in_memory = true;
  return data;
}

bool has_several_tensors(const OwnParts& parts) {
  return parts.inputs.size() > 1 || parts.targets.size() > 1;
}

// Checks the elements of an argument of several tensors: "x[1]".
void require_finite(const Tensors& tensors, std::string_view argument) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", argument, i);
    if (tensors[i].dim() == 0 || tensors[i].numel() == 0) continue;
    rubato::require_finite(SampleRows(array_of(tensors[i], name.c_str())),
                           fmt::format("data: '{}'", name));
  }
}

// Checks targets that the configuration's loss takes as probabilities.
void require_probabilities(const RunConfiguration& configuration, const Tensors& targets,
                           const char* argument) {
  if (targets.size() != 1 || targets.front().dim() == 0) return;
  const SampleRows rows(array_of(targets.front(), argument));
  if (!are_probabilities(configuration, rows)) return;
  rubato::require_probabilities(rows, fmt::format("data: '{}'", argument));
}

Tensors rows_of(const Tensors& tensors, const std::vector<std::int64_t>& rows) {
  const at::Tensor indices = at::tensor(at::IntArrayRef(rows), at::kLong);
  Tensors chosen;
  for (const at::Tensor& tensor : tensors) chosen.push_back(tensor.index_select(0, indices));
  return chosen;
}

// The first inputs and targets of the training samples, to choose samples by; the classes are
// counted if a sampler weighs them.
DataSets first_rows(const RunConfiguration& configuration, const OwnParts& parts) {
  constexpr std::int64_t kMostClasses = 1'000'000;
  DataSets data{.train = {.inputs = SampleRows(array_of(parts.inputs.front(), "inputs")),
                          .targets = SampleRows(array_of(parts.targets.front(), "targets"))}};
  const SampleRows& targets = data.train.targets;
  const bool one_class =
      parts.targets.size() == 1 && targets.shape().empty() && !is_real(targets.type());
  if (configuration.sampler->weights && one_class) {
    data.classes =
        count_classes(data.train, "data: 'y'", kMostClasses, ignored_targets(configuration, parts));
  }
  return data;
}

// Makes the training and the test set of samples with several inputs or targets. --validation holds
// out the same samples as for single tensors.
void put_several(const RunConfiguration& configuration, const OwnParts& parts, WorkloadParts& own) {
  require_finite(parts.inputs, "x");
  require_finite(parts.targets, "y");
  require_finite(parts.test_inputs, "x_test");
  require_finite(parts.test_targets, "y_test");
  require_probabilities(configuration, parts.targets, "y");
  require_probabilities(configuration, parts.test_targets, "y_test");
  own.train = dataset_of(parts.inputs, parts.targets);
  if (!parts.test_inputs.empty()) own.test = dataset_of(parts.test_inputs, parts.test_targets);
  if (!configuration.validation && !configuration.sampler->weights) return;
  DataSets data = first_rows(configuration, parts);
  hold_out(configuration, data);
  own.sampler = sampler_in(configuration, data);
  if (!configuration.validation) return;
  const auto of = [&parts](const SampleSet& set) {
    return dataset_of(rows_of(parts.inputs, *set.chosen), rows_of(parts.targets, *set.chosen));
  };
  own.train = of(data.train);
  own.test = of(*data.test);
}

std::shared_ptr<const Dataset> training_set(const RunConfiguration& configuration,
                                            const OwnParts& parts, c10::ScalarType type) {
  if (has_several_tensors(parts)) return dataset_of(parts.inputs, parts.targets);
  const DataSets data = data_sets(configuration, parts);
  const bool tokens = data.inputs == InputKind::tokens;
  return make_dataset(data, data.train,
                      {.input_shape = data.train.inputs.shape(),
                       .input_type = tokens ? at::kLong : type,
                       .real_target_type = type},
                      /*room=*/0);
}

}  // namespace

NumberArray array_of(const at::Tensor& tensor, const char* name) {
  const auto dense = std::make_shared<const at::Tensor>(tensor.contiguous());
  const NamedArray array = rubato::array_of({name, *dense});
  return {.type = array.type,
          .shape = array.shape,
          .bytes = {static_cast<const char*>(array.data), dense->nbytes()},
          .owner = dense};
}

std::shared_ptr<const Dataset> dataset_of(const Tensors& inputs, Tensors targets) {
  for (at::Tensor& target : targets) {
    if (c10::isIntegralType(target.scalar_type(), /*includeBool=*/false)) {
      target = target.to(at::kLong);
    }
  }
  return make_dataset(inputs, std::move(targets));
}

DataSets data_sets(const RunConfiguration& configuration, const OwnParts& parts) {
  return parts.inputs.empty() ? load_data(configuration)
                              : prepared(configuration, data_of(configuration, parts));
}

IgnoredTargets ignored_targets(const RunConfiguration& configuration, const OwnParts& parts) {
  IgnoredTargets ignored = rubato::ignored_targets(configuration);
  ignored.negative = ignored.negative || !parts.loss.empty();
  return ignored;
}

Loss own_loss(const RunConfiguration& configuration, const OwnParts& parts) {
  if (parts.loss.empty()) return {};
  if (configuration.label_smoothing > 0) {
    throw Error(
        "--label-smoothing: a loss of your own says itself what is smoothed; accepted: with "
        "nll or cross-entropy");
  }
  return script_loss(read_script(parts.loss, "loss"));
}

Tensors first_inputs(const RunConfiguration& configuration, const OwnParts& parts,
                     c10::ScalarType type) {
  const auto set = training_set(configuration, parts, type);
  return set->range(0, std::min(configuration.minibatch, set->size())).inputs;
}

std::shared_ptr<const Workload> load_workload(const RunConfiguration& configuration,
                                              const OwnParts& parts) {
  if (parts.model.empty() && parts.inputs.empty() && parts.loss.empty()) {
    return engine_of(configuration) == Engine::eigen ? dense_workload(configuration)
                                                     : torch_workload(configuration);
  }
  if (configuration.engine == Engine::eigen) {
    throw Error(
        "--engine eigen: a model, data or a loss of your own are for libtorch; accepted: --engine "
        "auto or libtorch");
  }
  WorkloadParts own{.loss = own_loss(configuration, parts)};
  if (!parts.model.empty()) own.model = read_script(parts.model, "model");
  own.transient = parts.transient;
  if (!has_several_tensors(parts)) {
    if (!parts.inputs.empty()) own.data = data_of(configuration, parts);
    return torch_workload(configuration, std::move(own));
  }
  put_several(configuration, parts, own);
  RunConfiguration rest = configuration;
  rest.validation.reset();
  return torch_workload(rest, std::move(own));
}

}  // namespace rubato::python
