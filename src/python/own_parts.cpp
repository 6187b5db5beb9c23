#include "python/own_parts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <rubato/core/error.hpp>
#include <rubato/model/script.hpp>
#include <rubato/run/dense_workload.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "data/data_files.hpp"
#include "run/run_data.hpp"
#include "torch/sample_dataset.hpp"
#include "torch_run/workload_parts.hpp"

namespace rubato::python {

namespace {

// The same memory where its numbers lie one after the other.
NumberArray array_of(const at::Tensor& tensor, const char* name) {
  const auto dense = std::make_shared<const at::Tensor>(tensor.contiguous());
  const NamedArray array = rubato::array_of({name, *dense});
  return {.type = array.type,
          .shape = array.shape,
          .bytes = {static_cast<const char*>(array.data), dense->nbytes()},
          .owner = dense};
}

DataSets data_of(const OwnParts& parts) {
  std::map<std::string, NumberArray> arrays;
  arrays["x"] = array_of(parts.inputs.front(), "x");
  arrays["y"] = array_of(parts.targets.front(), "y");
  if (!parts.test_inputs.empty()) {
    arrays["x_test"] = array_of(parts.test_inputs.front(), "x_test");
    arrays["y_test"] = array_of(parts.test_targets.front(), "y_test");
  }
  DataSets data = tensor_samples(arrays, "data");
  data.in_memory = true;
  return data;
}

Loss loss_of(const RunConfiguration& configuration, const OwnParts& parts) {
  if (parts.loss.empty()) return {};
  if (configuration.label_smoothing > 0) {
    throw Error(
        "--label-smoothing: a loss of your own says itself what is smoothed; accepted: with "
        "nll or cross-entropy");
  }
  return script_loss(read_script(parts.loss, "loss"));
}

// Classes in the type in which losses take them.
std::shared_ptr<const Dataset> dataset_of(const Tensors& inputs, Tensors targets) {
  for (at::Tensor& target : targets) {
    if (c10::isIntegralType(target.scalar_type(), /*includeBool=*/false)) {
      target = target.to(at::kLong);
    }
  }
  return make_dataset(inputs, std::move(targets));
}

std::shared_ptr<const Dataset> training_set(const RunConfiguration& configuration,
                                            const OwnParts& parts, c10::ScalarType type) {
  if (parts.inputs.size() > 1 || parts.targets.size() > 1) {
    return dataset_of(parts.inputs, parts.targets);
  }
  const DataSets data =
      parts.inputs.empty() ? load_data(configuration) : prepared(configuration, data_of(parts));
  const bool tokens = data.inputs == InputKind::tokens;
  return make_dataset(data, data.train,
                      {.input_shape = data.train.inputs.shape(),
                       .input_type = tokens ? at::kLong : type,
                       .real_target_type = type},
                      /*room=*/0);
}

}  // namespace

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
  WorkloadParts own{.loss = loss_of(configuration, parts)};
  if (!parts.model.empty()) own.model = read_script(parts.model, "model");
  if (parts.inputs.size() == 1 && parts.targets.size() == 1) {
    own.data = data_of(parts);
  } else if (!parts.inputs.empty()) {
    own.train = dataset_of(parts.inputs, parts.targets);
    if (!parts.test_inputs.empty()) own.test = dataset_of(parts.test_inputs, parts.test_targets);
  }
  return torch_workload(configuration, std::move(own));
}

}  // namespace rubato::python
