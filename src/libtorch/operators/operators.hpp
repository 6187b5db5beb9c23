#pragma once

#include <cstdint>

#include <ATen/core/TensorBody.h>

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

/// Attention of `heads` heads. `projection`, [samples, tokens, 3 x dim], has queries, keys and
/// values of every token, dim of each, and the first dim / heads of them are those of the first
/// head. `hidden`, [tokens, tokens], is true where a token (row) does not see another one;
/// undefined, it hides none. Returns [samples, tokens, dim].
///
/// Computed by rubato's kernels in a scope with `attention`, if the tensors are dense ones of
/// float32 on the CPU, and by libtorch's operators otherwise.
[[nodiscard]] at::Tensor attention_of(const at::Tensor& projection, std::int64_t heads,
                                      const at::Tensor& hidden);

}  // namespace rubato
