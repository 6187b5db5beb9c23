#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace rubato {

/// Remembers the state of libtorch's random number generator for the CPU, and restores it on
/// destruction.
class GeneratorKeeper {
 public:
  GeneratorKeeper()
      : generator_(at::globalContext().defaultGenerator(at::kCPU)),
        state_(generator_.get_state()) {}
  ~GeneratorKeeper() { generator_.set_state(state_); }
  /// Exchanges the generator's state with the remembered one.
  void swap() {
    const at::Tensor now = generator_.get_state();
    generator_.set_state(state_);
    state_ = now;
  }
  GeneratorKeeper(const GeneratorKeeper&) = delete;
  GeneratorKeeper& operator=(const GeneratorKeeper&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace rubato
