#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rubato/steps/random.hpp>

namespace rubato {

/// Random numbers of one minibatch. While a Scope lives, every operator of libtorch that its thread
/// runs and that would draw from libtorch's generator, which is one for the whole process, draws
/// from this one instead: dropout, at::randn, randperm and all others that take a generator. An
/// operator that is given a generator keeps it. Other operators cost nothing more.
///
/// libtorch has no public way for this. It uses a dispatch key that nothing else does
/// (TESTING_ONLY_GenericMode), included on the thread; under it, every operator with an optional
/// generator has a kernel that fills it in and goes on to the next one.
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

  /// Begins the stream of `key` anew, for this thread.
  [[nodiscard]] Scope begin(const StreamKey& key);

 private:
  at::Generator generator_;
};

}  // namespace rubato
