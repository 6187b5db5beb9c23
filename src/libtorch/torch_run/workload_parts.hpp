#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

// Clang needs this header before the ones below.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/runs/workload.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// Parts that a program has itself, instead of those that a configuration names; each may be left
/// out.
struct WorkloadParts {
  /// The model, if the configuration's model is kOwn.
  std::optional<torch::jit::Module> model{};
  /// Names of the model's buffers that are not in files of weights.
  std::vector<std::string> transient{};
  /// The data, if the configuration's data are kOwn; DataSets::channels and features are not set
  /// yet.
  std::optional<DataSets> data{};
  /// Data sets that are used instead of `data` if a sample has several inputs or targets, which
  /// only models of TorchScript take. Without a training set there is no test set.
  std::shared_ptr<const Dataset> train{};
  std::shared_ptr<const Dataset> test{};
  /// Loss of the training and of the test set.
  Loss loss{};
};

/// torch_workload() (rubato/libtorch/workload.hpp) with these parts, for which its contract holds,
/// too.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration,
                                                             WorkloadParts parts);

}  // namespace rubato
