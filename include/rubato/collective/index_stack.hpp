#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rubato {

/// A lock-free stack of numbers below a limit, each of which is in it at most once: a free list.
///
/// Thread safety: push() and pop() may be called by any number of threads at once. Everything that
/// a thread did before push(i) happens before the return of the pop() that gives i out again.
/// clear() must not run beside anything else.
///
/// Invariants:
///  1. next_[i] is written only by the one who pushes i, which nobody else has then.
///  2. top_ changes only by compare-and-exchange. Its upper half counts the changes: a stack that
///     looks the same again is not taken for the same (the ABA problem).
///
/// `Atomic` is std::atomic, or a model checker's.
template <template <class> class Atomic = std::atomic>
class IndexStack {
 public:
  /// For the numbers 0 to limit - 1; limit < 2^32.
  explicit IndexStack(std::size_t limit) : next_(limit) {}

  void push(std::uint32_t index) {
    // Relaxed: only a first guess, the exchange checks it.
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      // Relaxed: the exchange below publishes it.
      next_[index].store(index_in(top), std::memory_order_relaxed);
      // Release: what the pusher did, and the store above, reach whoever pops the number.
    } while (!top_.compare_exchange_weak(top, changed(top, index), std::memory_order_release,
                                         std::memory_order_relaxed));
  }

  [[nodiscard]] std::optional<std::uint32_t> pop() {
    // Acquire, here and on failure below: what the pusher stored in next_, and what it did before
    // it gave the number back, must be visible.
    std::uint64_t top = top_.load(std::memory_order_acquire);
    while (index_in(top) != kNone) {
      const std::uint32_t index = index_in(top);
      // Relaxed: where another thread pops and pushes this number meanwhile, the value may be a
      // later one, but then the count in top_ has changed and the exchange fails.
      const std::uint32_t next = next_[index].load(std::memory_order_relaxed);
      // Acquire on failure: for the next round. On success it finds the very value that was
      // acquired, and needs nothing; the changes are one release sequence, so that whoever acquires
      // a later one still sees what the pushers of all numbers below did.
      if (top_.compare_exchange_weak(top, changed(top, next), std::memory_order_acquire,
                                     std::memory_order_acquire)) {
        return index;
      }
    }
    return std::nullopt;
  }

  void clear() {
    // Relaxed: no other thread is here.
    top_.store(changed(top_.load(std::memory_order_relaxed), kNone), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint64_t changed(std::uint64_t old, std::uint32_t index) {
    return ((old >> 32) + 1) << 32 | index;
  }
  static constexpr std::uint32_t index_in(std::uint64_t top) {
    return static_cast<std::uint32_t>(top);
  }

  std::vector<Atomic<std::uint32_t>> next_;
  alignas(128) Atomic<std::uint64_t> top_{kNone};
};

}  // namespace rubato
