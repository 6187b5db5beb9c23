#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rubato/steps/random.hpp>

namespace rubato {

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
