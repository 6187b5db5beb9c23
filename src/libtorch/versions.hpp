#pragma once

// Differences between the versions of libtorch that rubato is built with, 1.13 and 2.x; the version
// does not matter anywhere else.

#include <string>
#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

namespace rubato::libtorch {

#if TORCH_VERSION_MAJOR >= 2

/// Hears the warnings of libtorch on a thread where a WarningGuard lives.
class WarningListener : public c10::WarningHandler {
 public:
  virtual void on_message(std::string_view message) = 0;
  void process(const c10::Warning& warning) final { on_message(warning.msg()); }
};
using WarningGuard = c10::WarningUtils::WarningHandlerGuard;

/// Type of the memo that IValue::deepcopy() takes.
using CopiedValues = c10::IValue::HashIdentityIValueMap;

/// Type in which a kernel of convolution_backward without symbols takes the sizes of a bias.
using BiasSizes = at::OptionalIntArrayRef;

/// Converts sizes for redispatch(), which takes symbols.
inline at::SymIntArrayRef sizes(at::IntArrayRef numbers) {
  return c10::fromIntArrayRefSlow(numbers);
}
inline at::OptionalSymIntArrayRef sizes(at::OptionalIntArrayRef numbers) {
  if (!numbers.has_value()) return at::OptionalSymIntArrayRef();
  return sizes(*numbers);
}

/// The functions below are about autocast on the CPU, for the calling thread.
inline bool is_autocast_on() {
  return at::autocast::is_autocast_enabled(at::kCPU);
}
inline void set_autocast_on(bool on) {
  at::autocast::set_autocast_enabled(at::kCPU, on);
}
inline at::ScalarType autocast_type() {
  return at::autocast::get_autocast_dtype(at::kCPU);
}
inline void set_autocast_type(at::ScalarType type) {
  at::autocast::set_autocast_dtype(at::kCPU, type);
}

#else

class WarningListener : public c10::WarningHandler {
 public:
  virtual void on_message(std::string_view message) = 0;
  void process(const c10::SourceLocation& /*place*/, const std::string& message,
               bool /*verbatim*/) final {
    on_message(message);
  }
};
using WarningGuard = c10::Warning::WarningHandlerGuard;

using CopiedValues = c10::IValue::HashAliasedIValueMap;

using BiasSizes = at::OptionalSymIntArrayRef;

inline at::IntArrayRef sizes(at::IntArrayRef numbers) {
  return numbers;
}
inline at::OptionalSymIntArrayRef sizes(at::OptionalSymIntArrayRef symbols) {
  return symbols;
}

inline bool is_autocast_on() {
  return at::autocast::is_cpu_enabled();
}
inline void set_autocast_on(bool on) {
  at::autocast::set_cpu_enabled(on);
}
inline at::ScalarType autocast_type() {
  return at::autocast::get_autocast_cpu_dtype();
}
inline void set_autocast_type(at::ScalarType type) {
  at::autocast::set_autocast_cpu_dtype(type);
}

#endif

}  // namespace rubato::libtorch
