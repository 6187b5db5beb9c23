#pragma once

#include <optional>
#include <span>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rubato/steps/random.hpp>

namespace rubato {

/// Rounds every value to the nearest that a float16 holds, ties to even: values of at least 65520
/// become infinite, those of at most 2^-25 become 0.
void round_to_half(std::span<float> values);
/// Rounds the values of a dense float32 tensor on the CPU; other tensors are left alone.
void round_to_half(const at::Tensor& tensor);

/// While it lives, results of operators of libtorch on its thread are rounded to float16: they are
/// float32 tensors with the values that float16 tensors would have, forward and backward, although
/// libtorch 1.13 has hardly any operator for float16 on a CPU. An operator computes in float32 and
/// stores float16, as GPUs' do; so does a composite one, such as batch normalisation, as a whole.
/// Operators that CUDA's autocast leaves in float32 stay in float32: (log-)softmax, losses, norms,
/// sums, exponentials and the like. Values that operators write into their arguments (running
/// statistics) are not rounded, either.
///
/// libtorch has no public way for this. It uses a dispatch key that nothing else does
/// (TESTING_ONLY_GenericWrapper), included on the thread, with a fallback for all operators;
/// without a HalfStorage they have no extra cost.
class HalfStorage {
 public:
  explicit HalfStorage(bool on);
  ~HalfStorage() = default;
  HalfStorage(const HalfStorage&) = delete;
  HalfStorage& operator=(const HalfStorage&) = delete;

 private:
  std::optional<c10::impl::IncludeDispatchKeyGuard> guard_;
};

/// Random numbers of one minibatch. While a Scope lives, every operator of libtorch on its thread
/// that would draw from libtorch's generator, of which a process has only one, draws from this
/// stream instead: dropout, at::randn, randperm and all others that take a generator. An operator
/// that is given a generator keeps it. Other operators have no extra cost.
///
/// libtorch has no public way for this. It uses a dispatch key that nothing else does
/// (TESTING_ONLY_GenericMode), included on the thread; under it, every operator with an optional
/// generator has a kernel that fills it in and calls the next kernel.
///
/// Not to be used by two threads at once.
class RandomStream {
 public:
  RandomStream();

  class Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend RandomStream;
    explicit Scope(const at::Generator& generator);

    const at::Generator* before_;
    c10::impl::IncludeDispatchKeyGuard guard_;
  };

  /// Restarts the stream of `key`, for this thread.
  [[nodiscard]] Scope begin(const StreamKey& key);

 private:
  at::Generator generator_;
};

}  // namespace rubato
