#pragma once

// The model checker, without its macros for names of the language and of the standard library.

#include <atomic>
#include <cerrno>
#include <cstdlib>

#pragma push_macro("errno")

#include <relacy/relacy.hpp>

#pragma pop_macro("errno")
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef assert

namespace rubato::test {

inline rl::memory_order checked_order(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return rl::mo_relaxed;
    case std::memory_order_consume:
      return rl::mo_consume;
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_acq_rel:
      return rl::mo_acq_rel;
    case std::memory_order_seq_cst:
      return rl::mo_seq_cst;
  }
  return rl::mo_seq_cst;
}

/// std::atomic as the checker sees it.
template <class T>
class CheckedAtomic {
 public:
  CheckedAtomic(T value = {}) { store(value, std::memory_order_relaxed); }
  T load(std::memory_order order) const { return atomic_.load(checked_order(order), $); }
  void store(T value, std::memory_order order) { atomic_.store(value, checked_order(order), $); }
  T exchange(T value, std::memory_order order) {
    return atomic_.exchange(value, checked_order(order), $);
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                             std::memory_order failure) {
    return atomic_.compare_exchange_weak(expected, value, checked_order(success), $,
                                         checked_order(failure), $);
  }

 private:
  rl::atomic<T> atomic_;
};

/// A planted fault: every order is relaxed, so that nothing is published.
template <class T>
class RelaxedAtomic : public CheckedAtomic<T> {
 public:
  using CheckedAtomic<T>::CheckedAtomic;
  T exchange(T value, std::memory_order) {
    return CheckedAtomic<T>::exchange(value, std::memory_order_relaxed);
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order, std::memory_order) {
    return CheckedAtomic<T>::compare_exchange_weak(expected, value, std::memory_order_relaxed,
                                                   std::memory_order_relaxed);
  }
};

}  // namespace rubato::test
