#pragma once

#include <rubato/loop/libtorch_options.hpp>

namespace rubato {

/// While it lives, these operators are rubato's on this thread, even if a user's model or a
/// TorchScript module calls them. Scopes nest; the innermost one counts.
///
/// The first scope registers kernels for the dispatch key BackendSelect, which lies below autograd
/// and above the CPU's; they pass on calls that they cannot compute. They stay registered for the
/// life of the process and cost other threads a look at a thread-local pointer.
class OperatorScope {
 public:
  /// `operators` must outlive this object.
  explicit OperatorScope(const ReplacedOperators& operators);
  ~OperatorScope();
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

 private:
  const ReplacedOperators* before_;
};

}  // namespace rubato
