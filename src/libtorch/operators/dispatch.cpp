#include "dispatch.hpp"

namespace rubato {

namespace {

constexpr ReplacedOperators kNone = ReplacedOperators::none();
thread_local const ReplacedOperators* innermost = &kNone;

// The kernels are never unregistered: another thread may be in one.
void register_once() {
  static const auto* const registrations = [] {
    auto* const all = new operators::Registrations();
    operators::add_convolution(*all);
    operators::add_max_pool(*all);
    operators::add_batch_norm(*all);
    operators::add_attention(*all);
    return all;
  }();
  static_cast<void>(registrations);
}

}  // namespace

const ReplacedOperators& operators::current() {
  return *innermost;
}

std::int64_t operators::windows_of(const Axis& axis, bool ceil) {
  const auto& [input, none_yet, kernel, stride, padding, dilation] = axis;
  if (kernel < 1 || stride < 1 || padding < 0 || dilation < 1) return 0;
  const std::int64_t room = input + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0) return 0;
  const std::int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (count - 1) * stride >= input + padding ? count - 1 : count;
}

OperatorScope::OperatorScope(const ReplacedOperators& operators) : before_(innermost) {
  register_once();
  innermost = &operators;
}

OperatorScope::~OperatorScope() {
  innermost = before_;
}

}  // namespace rubato
