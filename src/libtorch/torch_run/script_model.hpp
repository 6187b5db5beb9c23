#pragma once

#include <functional>
#include <utility>

// Clang needs this header before the ones below.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/model.hpp>

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

}  // namespace rubato
