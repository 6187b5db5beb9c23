#include "python/own_parts.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/model/script.hpp>
#include <rubato/run/dense_workload.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch_run/own_workload.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "config/loss.hpp"
#include "data/data_files.hpp"
#include "torch_run/libtorch_workload.hpp"
#include "torch_run/portable_kernels.hpp"
#include "torch_run/run_loss.hpp"
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

// Models of several inputs, or of several targets of a sample, which no file has.
std::shared_ptr<const Workload> several(const RunConfiguration& configuration,
                                        const OwnParts& parts) {
  if (parts.model.empty()) {
    throw Error(
        fmt::format("--model {}: it takes one tensor of inputs and one of targets; accepted: a "
                    "model of your own",
                    configuration.model));
  }
  if (configuration.validation) {
    throw Error(
        "--validation: of several inputs or targets no share is held out; accepted: (inputs, "
        "targets) to test on");
  }
  if (!configuration.weights.empty()) {
    throw Error(
        "--weights: a model of several inputs or targets begins with those that it has; accepted: "
        "model.load_state_dict() before");
  }
  if (configuration.kernels == Kernels::portable) require_portable_kernels(kernel_facts());
  OwnWorkload own{.model = script_factory(read_script(parts.model, "model")),
                  .loss = loss_of(configuration, parts),
                  .train = make_dataset(parts.inputs, parts.targets)};
  if (!parts.test_inputs.empty()) own.test = make_dataset(parts.test_inputs, parts.test_targets);
  if (!own.loss) {
    const std::string loss = rubato::loss_of(configuration);
    own.loss = run_loss(loss, configuration.label_smoothing, /*script=*/{});
    own.test_loss = run_loss(loss, /*label_smoothing=*/0, /*script=*/{});
  }
  return own_workload(std::move(own), torch_options(configuration));
}

}  // namespace

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
  if (parts.inputs.size() > 1 || parts.targets.size() > 1) return several(configuration, parts);
  WorkloadParts own{.loss = loss_of(configuration, parts)};
  if (!parts.model.empty()) own.model = read_script(parts.model, "model");
  if (!parts.inputs.empty()) own.data = data_of(parts);
  return torch_workload(configuration, std::move(own));
}

}  // namespace rubato::python
