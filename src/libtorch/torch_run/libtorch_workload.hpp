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

/// Parts of a workload of libtorch, wherever they come from.
struct LibtorchParts {
  /// Description for people, in one line.
  std::string description;
  ModelFactory model;
  Loss loss;
  /// Loss of the test set; empty means the training loss.
  Loss test_loss;
  std::shared_ptr<const Dataset> train;
  /// Test set; null means none.
  std::shared_ptr<const Dataset> test;
  TorchOptions options;
  /// The model as it was given, if it is TorchScript; `model` is then empty.
  std::shared_ptr<ScriptModel> script{};
  /// Names of the model's buffers that are not in files of weights.
  std::vector<std::string> transient{};
  /// Number of classes of the targets; 0 if they are not classes, or were not counted.
  std::int64_t classes = 0;
  /// Size of the gradient, if known.
  std::optional<std::int64_t> gradient_bytes{};
  std::vector<WorkloadFile> files{};
  /// Results of Workload::data_record() and Workload::class_names().
  std::string data_record{};
  std::vector<std::string> class_names{};
};

/// Size of the gradient of a model.
[[nodiscard]] std::int64_t gradient_bytes(const Model& model);

[[nodiscard]] std::shared_ptr<const Workload> libtorch_workload(LibtorchParts parts);

/// The kernels in use, by library.
[[nodiscard]] EngineFacts::Facts kernel_facts();

}  // namespace rubato
