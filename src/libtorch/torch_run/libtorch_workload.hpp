#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Clang needs this header before the ones below.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/random.hpp>

#include "loop/data/sample_set.hpp"
#include "runs/config/allowed.hpp"

namespace rubato {

/// The TorchScript model of a workload. The values of its parameters are in memory from reading
/// until a trainer has its own.
class ScriptModel {
 public:
  using Read = std::function<torch::jit::Module()>;
  using Begin = std::function<void(const Model& model)>;

  /// Calls `read` now, and again for each further trainer.
  explicit ScriptModel(Read read) : read_(std::move(read)), module_(read_()) {}
  /// Takes an existing module, whose values stay in memory.
  explicit ScriptModel(const torch::jit::Module& module) : module_(module) {}

  /// Sets the function that gives the model its initial values, and calls it now and after each
  /// reading.
  void begin_with(Begin begin);

  /// The module, whose parameters have their values until forget().
  [[nodiscard]] const torch::jit::Module& module() const { return module_; }
  /// A factory of instances with the initial values.
  [[nodiscard]] ModelFactory factory();
  /// Releases the values; called once a trainer has been made of the factory.
  void forget();

 private:
  Read read_;
  Begin begin_;
  torch::jit::Module module_;
  bool forgotten_ = false;
};

/// The loss that --loss names. `script` is the content of its file, if it has one. Throws Error for
/// a file that is not TorchScript.
[[nodiscard]] Loss run_loss(const Parsed<LossChoice>& loss, double label_smoothing,
                            std::string_view script);

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
  /// Result of Workload::sampler() with these data sets.
  Sampler sampler{};
};

/// torch_workload() (rubato/libtorch/workload.hpp) with these parts, for which its contract holds,
/// too.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration,
                                                             WorkloadParts parts);

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
  /// The facts about the data that the options of a run must suit; empty if they are not known.
  std::optional<KnownData> known{};
  /// Result of Workload::sampler().
  Sampler sampler{};
  /// Number of classes of the targets; 0 if they are not classes, or were not counted.
  std::int64_t classes = 0;
  /// Result of Workload::bytes_per_target().
  double bytes_per_target = 0;
  /// Size of the gradient, if known.
  std::optional<std::int64_t> gradient_bytes{};
  std::vector<WorkloadFile> files{};
  /// Results of Workload::data_record(), Workload::class_names() and Workload::sample_names().
  std::string data_record{};
  std::vector<std::string> class_names{};
  std::vector<std::string> sample_names{};
};

/// Size of the gradient of a model.
[[nodiscard]] std::int64_t gradient_bytes(const Model& model);

[[nodiscard]] std::shared_ptr<const Workload> libtorch_workload(LibtorchParts parts);

/// The kernels in use, by library.
[[nodiscard]] EngineFacts::Facts kernel_facts();

}  // namespace rubato
