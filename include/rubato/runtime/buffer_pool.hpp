#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include <rubato/collective/index_stack.hpp>
#include <rubato/collective/partial_sum.hpp>

namespace rubato {

/// Buffers for partial sums, made when first needed and kept until the pool is gone.
///
/// Thread safety: acquire() and release() may be called by any number of threads at once; both are
/// lock-free, and neither allocates once as many buffers exist as were ever alive at one time.
/// Everything that a thread did to a buffer before release() happens before the return of the
/// acquire() that gives it out again. reclaim_all() must not run beside anything else.
///
/// T is float or double.
template <class T>
class BufferPool {
 public:
  /// At most `max_buffers` buffers of `values` values and `squares` squares each.
  BufferPool(std::size_t values, std::size_t max_buffers, std::size_t squares = 0);

  /// A buffer that is nobody else's, with all values and scalars zero and no squares taken. Aborts
  /// when all max_buffers are leased.
  [[nodiscard]] PartialSum<T>* acquire();
  void release(PartialSum<T>* buffer);
  /// Takes back every buffer, whoever has it: after a step that was given up.
  void reclaim_all();

  /// Dense numbers from 0, in the order in which the buffers were made.
  [[nodiscard]] SumId id_of(const PartialSum<T>* buffer) const;
  [[nodiscard]] PartialSum<T>* operator[](SumId id) {
    return &slots_[static_cast<std::size_t>(id)].sum;
  }
  [[nodiscard]] std::size_t max_buffers() const { return slots_.size(); }
  /// Buffers alive at one time at most so far.
  [[nodiscard]] std::int64_t high_water() const {
    return high_water_.load(std::memory_order_relaxed);
  }

 private:
  struct FreeMemory {
    void operator()(T* memory) const { ::operator delete[](memory, kAlignment); }
  };
  struct Slot {
    PartialSum<T> sum;
    std::unique_ptr<T[], FreeMemory> memory;
    std::unique_ptr<double[]> squares;
  };

  // Two cache lines: vector kernels need no peeling, and neighbours share nothing.
  static constexpr std::align_val_t kAlignment{128};

  // A buffer that is free, or a new one.
  Slot& take();
  void count_lease();

  std::size_t values_;
  std::size_t squares_;
  std::vector<Slot> slots_;
  IndexStack<> free_;
  alignas(128) std::atomic<std::uint32_t> made_{0};
  std::atomic<std::int64_t> leased_{0};
  std::atomic<std::int64_t> high_water_{0};
};

extern template class BufferPool<float>;
extern template class BufferPool<double>;

}  // namespace rubato
