#pragma once

#include <ATen/autocast_mode.h>

namespace rubato {

/// Switches autocast to bfloat16 on for this thread, for as long as it lives.
class AutocastGuard {
 public:
  explicit AutocastGuard(bool on)
      : on_(on),
        was_enabled_(at::autocast::is_cpu_enabled()),
        type_(at::autocast::get_autocast_cpu_dtype()) {
    if (!on_) return;
    at::autocast::set_cpu_enabled(true);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  }
  ~AutocastGuard() {
    if (!on_) return;
    at::autocast::set_cpu_enabled(was_enabled_);
    at::autocast::set_autocast_cpu_dtype(type_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool on_;
  bool was_enabled_;
  at::ScalarType type_;
};

}  // namespace rubato
