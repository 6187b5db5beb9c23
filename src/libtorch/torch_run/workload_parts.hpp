#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/runs/workload.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// What a program has itself, in place of what a configuration names; each may be left out.
struct WorkloadParts {
  /// Where the configuration's model is kOwn.
  std::optional<torch::jit::Module> model{};
  /// Names of its buffers that are in no file of weights.
  std::vector<std::string> transient{};
  /// Where its data are kOwn; DataSets::channels and features are not set yet.
  std::optional<DataSets> data{};
  /// Instead of `data` where a sample has several inputs or targets, which only models of
  /// TorchScript take. Without a training set there is no test set.
  std::shared_ptr<const Dataset> train{};
  std::shared_ptr<const Dataset> test{};
  /// Of training and of the test set.
  Loss loss{};
};

/// torch_workload() (rubato/libtorch/workload.hpp) with these parts. What it says of the
/// configuration holds of them, too.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration,
                                                             WorkloadParts parts);

}  // namespace rubato
