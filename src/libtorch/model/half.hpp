#pragma once

#include <optional>
#include <span>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rubato {

/// Rounds every value to the nearest that a float16 holds, ties to even: values of at least 65520
/// become infinite, those of at most 2^-25 become 0.
void round_to_half(std::span<float> values);
/// The same for the values of a dense float32 tensor on the CPU; others are left alone.
void round_to_half(const at::Tensor& tensor);

/// While it lives, and its thread runs operators of libtorch, what they return is rounded to
/// float16: float32 tensors that hold what float16 tensors would, forward and backward, although
/// libtorch 1.13 has hardly any operator for float16 on a CPU. An operator computes in float32 and
/// stores float16, as GPUs' do; so does a composite one, such as batch normalisation, as a whole.
/// Left in float32 is what CUDA's autocast leaves there: (log-)softmax, losses, norms, sums,
/// exponentials and the like. What operators write into their arguments (running statistics) is not
/// rounded, either.
///
/// libtorch has no public way for this. It uses a dispatch key that nothing else does
/// (TESTING_ONLY_GenericWrapper), included on the thread, with a fallback for all operators; where
/// no HalfStorage lives they cost nothing more.
class HalfStorage {
 public:
  explicit HalfStorage(bool on);
  ~HalfStorage() = default;
  HalfStorage(const HalfStorage&) = delete;
  HalfStorage& operator=(const HalfStorage&) = delete;

 private:
  std::optional<c10::impl::IncludeDispatchKeyGuard> guard_;
};

}  // namespace rubato
