#pragma once

#include <rubato/loop/training_options.hpp>

namespace rubato {

/// While it lives, these operators are rubato's on this thread, also where a model of the user's or
/// a TorchScript module calls them. Scopes nest; the innermost counts.
///
/// The first one registers kernels for the dispatch key BackendSelect, which lies below autograd
/// and above the CPU's; they hand on what they do not take. They stay for as long as the process
/// and cost other threads a look at a thread-local pointer.
class OperatorScope {
 public:
  /// `operators` has to outlive it.
  explicit OperatorScope(const ReplacedOperators& operators);
  ~OperatorScope();
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

 private:
  const ReplacedOperators* before_;
};

}  // namespace rubato
