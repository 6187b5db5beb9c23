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
  T fetch_sub(T value, std::memory_order order) {
    return atomic_.fetch_sub(value, checked_order(order), $);
  }

 private:
  rl::atomic<T> atomic_;
};

/// The orders that a code asks for, by operation.
enum class Operation { load, exchange, success, failure, fetch_sub };

/// A planted fault: where the code asks for one order of an operation, it gets another.
template <class T, Operation Planted, std::memory_order Asked, std::memory_order Given>
class PlantedAtomic : public CheckedAtomic<T> {
 public:
  using CheckedAtomic<T>::CheckedAtomic;
  T load(std::memory_order order) const {
    return CheckedAtomic<T>::load(order_of(Operation::load, order));
  }
  T exchange(T value, std::memory_order order) {
    return CheckedAtomic<T>::exchange(value, order_of(Operation::exchange, order));
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                             std::memory_order failure) {
    return CheckedAtomic<T>::compare_exchange_weak(expected, value,
                                                   order_of(Operation::success, success),
                                                   order_of(Operation::failure, failure));
  }
  T fetch_sub(T value, std::memory_order order) {
    return CheckedAtomic<T>::fetch_sub(value, order_of(Operation::fetch_sub, order));
  }

 private:
  static constexpr std::memory_order order_of(Operation operation, std::memory_order asked) {
    return operation == Planted && asked == Asked ? Given : asked;
  }
};

/// A planted fault: the upper half of a wide number, in which changes are counted, is always 0.
template <class T>
class UncountedAtomic : public CheckedAtomic<T> {
 public:
  UncountedAtomic(T value = {}) : CheckedAtomic<T>(lower(value)) {}
  bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                             std::memory_order failure) {
    return CheckedAtomic<T>::compare_exchange_weak(expected, lower(value), success, failure);
  }

 private:
  static constexpr T lower(T value) { return static_cast<T>(value & 0xffffffff); }
};

}  // namespace rubato::test
