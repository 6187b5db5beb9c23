#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "libtorch/versions.hpp"

namespace rubato {

/// Switches autocast to bfloat16 on for this thread while it lives. The cache of casts is off: it
/// is shared by the whole process, and would return the parameters from before an update.
class AutocastGuard {
 public:
  explicit AutocastGuard(bool on)
      : on_(on),
        was_enabled_(libtorch::is_autocast_on()),
        was_cached_(at::autocast::is_autocast_cache_enabled()),
        type_(libtorch::autocast_type()) {
    if (!on_) return;
    libtorch::set_autocast_on(true);
    libtorch::set_autocast_type(at::kBFloat16);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastGuard() {
    if (!on_) return;
    libtorch::set_autocast_on(was_enabled_);
    libtorch::set_autocast_type(type_);
    at::autocast::set_autocast_cache_enabled(was_cached_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool on_;
  bool was_enabled_;
  bool was_cached_;
  at::ScalarType type_;
};

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
