#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

class ScriptModel;

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
  /// The model as it was given, where it is TorchScript; `model` is then left empty.
  std::shared_ptr<ScriptModel> script{};
  /// Names of its buffers that are in no file of weights.
  std::vector<std::string> transient{};
  /// The targets have this many classes; 0 if they are not classes, or were not counted.
  std::int64_t classes = 0;
  /// Where it is known.
  std::optional<std::int64_t> gradient_bytes{};
  std::vector<WorkloadFile> files{};
  /// As the workload has them.
  std::string data_record{};
  std::vector<std::string> class_names{};
};

/// Of the gradient of a model.
[[nodiscard]] std::int64_t gradient_bytes(const Model& model);

[[nodiscard]] std::shared_ptr<const Workload> libtorch_workload(LibtorchParts parts);

/// The kernels in use, of each library.
[[nodiscard]] EngineFacts::Facts kernel_facts();

}  // namespace rubato
