#pragma once

#include <functional>
#include <utility>

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// The TorchScript model of a workload. The values of its parameters are in memory from when it is
/// read until a trainer has its own.
class ScriptModel {
 public:
  using Read = std::function<torch::jit::Module()>;
  using Begin = std::function<void(const Model& model)>;

  /// Calls `read`, and again for each further trainer.
  explicit ScriptModel(Read read) : read_(std::move(read)), module_(read_()) {}
  /// One that there is, whose values stay.
  explicit ScriptModel(const torch::jit::Module& module) : module_(module) {}

  /// From here on `begin` gives the model its initial values, once it is read.
  void begin_with(Begin begin);

  /// The values of its parameters count until forget().
  [[nodiscard]] const torch::jit::Module& module() const { return module_; }
  /// Of the values that it begins with.
  [[nodiscard]] ModelFactory factory();
  /// Once a trainer has been made of the factory.
  void forget();

 private:
  Read read_;
  Begin begin_;
  torch::jit::Module module_;
  bool forgotten_ = false;
};

}  // namespace rubato
