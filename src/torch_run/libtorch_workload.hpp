#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/model/model.hpp>
#include <rubato/run/workload.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/torch_options.hpp>

namespace rubato {

/// What a workload of libtorch is made of, whoever has it.
struct LibtorchParts {
  /// For people, in a line.
  std::string description;
  ModelFactory model;
  Loss loss;
  /// Of the test set; empty is the training loss.
  Loss test_loss;
  std::shared_ptr<const Dataset> train;
  /// Null is none.
  std::shared_ptr<const Dataset> test;
  TorchOptions options;
  /// The model as it was given, where it is TorchScript.
  std::optional<torch::jit::Module> script{};
  std::vector<WorkloadFile> files{};
};

[[nodiscard]] std::shared_ptr<const Workload> libtorch_workload(LibtorchParts parts);

/// The kernels in use, of each library.
[[nodiscard]] EngineFacts::Facts kernel_facts();

}  // namespace rubato
