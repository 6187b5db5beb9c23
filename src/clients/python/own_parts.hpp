#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "loop/data/sample_set.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato::python {

/// Objects that Python passes to a training besides its options.
struct OwnParts {
  /// The bytes of torch.jit.save(); empty means the model that the configuration names.
  std::string model{};
  /// Names of the model's buffers that are not in a state_dict.
  std::vector<std::string> transient{};
  /// The bytes of a TorchScript module of outputs and targets; empty means the loss that the
  /// configuration names.
  std::string loss{};
  /// Training data, with the same number of samples in all tensors; empty means the data that the
  /// configuration names.
  Tensors inputs{};
  Tensors targets{};
  /// Test data; empty means none, or those of the data that the configuration names.
  Tensors test_inputs{};
  Tensors test_targets{};
  /// Steps of the run; empty means the trace that the configuration names.
  std::optional<RunSteps> steps{};
};

/// An array of the same memory if the tensor is contiguous, or else of a copy; `name` is for
/// messages.
[[nodiscard]] NumberArray array_of(const at::Tensor& tensor, const char* name);

/// Samples of several tensors as they are, except for classes, which are converted to the type in
/// which losses take them.
[[nodiscard]] std::shared_ptr<const Dataset> dataset_of(const Tensors& inputs, Tensors targets);

/// The data, with one tensor of inputs and one of targets, prepared as for training.
[[nodiscard]] DataSets data_sets(const RunConfiguration& configuration, const OwnParts& parts);

/// The targets that are left out by the user's loss, or by the one that the configuration names.
[[nodiscard]] IgnoredTargets ignored_targets(const RunConfiguration& configuration,
                                             const OwnParts& parts);

/// The user's loss; empty if the configuration names it.
[[nodiscard]] Loss own_loss(const RunConfiguration& configuration, const OwnParts& parts);

/// The workload of a configuration with these parts instead of those that it names. Throws Error.
[[nodiscard]] std::shared_ptr<const Workload> load_workload(const RunConfiguration& configuration,
                                                            const OwnParts& parts);

/// The inputs of the first minibatch of the training data, in the shape and of the type in which
/// training gives them to a model whose parameters are of `type`. Throws Error.
[[nodiscard]] Tensors first_inputs(const RunConfiguration& configuration, const OwnParts& parts,
                                   c10::ScalarType type);

}  // namespace rubato::python
