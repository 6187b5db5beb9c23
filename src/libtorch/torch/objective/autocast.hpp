#pragma once

#include <ATen/autocast_mode.h>

namespace rubato {

/// Switches autocast to bfloat16 on for this thread, for as long as it lives. Without its cache of
/// casts: that is one for the whole process, and would go on giving out what the parameters were
/// before an update.
class AutocastGuard {
 public:
  explicit AutocastGuard(bool on)
      : on_(on),
        was_enabled_(at::autocast::is_cpu_enabled()),
        was_cached_(at::autocast::is_autocast_cache_enabled()),
        type_(at::autocast::get_autocast_cpu_dtype()) {
    if (!on_) return;
    at::autocast::set_cpu_enabled(true);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastGuard() {
    if (!on_) return;
    at::autocast::set_cpu_enabled(was_enabled_);
    at::autocast::set_autocast_cpu_dtype(type_);
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

}  // namespace rubato
