#include <algorithm>

#include <rubato/core/check.hpp>
#include <rubato/runtime/buffer_pool.hpp>

namespace rubato {

template <class T>
BufferPool<T>::BufferPool(std::size_t values, std::size_t max_buffers)
    : values_(values), slots_(max_buffers) {
  RUBATO_CHECK(max_buffers < kNone, "buffers are counted in 32 bits");
}

template <class T>
PartialSum<T>* BufferPool<T>::acquire() {
  PartialSum<T>& sum = pop_or_make().sum;
  count_lease();
  std::fill(sum.values.begin(), sum.values.end(), T{0});
  sum.scalars = {};
  return &sum;
}

template <class T>
void BufferPool<T>::release(PartialSum<T>* buffer) {
  leased_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a statistic
  push(static_cast<std::uint32_t>(index_of(buffer)));
}

template <class T>
void BufferPool<T>::reclaim_all() {
  // Relaxed throughout: no other thread is here.
  head_.store(tagged(head_.load(std::memory_order_relaxed), kNone), std::memory_order_relaxed);
  leased_.store(0, std::memory_order_relaxed);
  for (std::uint32_t i = made_.load(std::memory_order_relaxed); i-- > 0;) push(i);
}

template <class T>
std::size_t BufferPool<T>::index_of(const PartialSum<T>* buffer) const {
  // `sum` is the first member of a slot.
  return static_cast<std::size_t>(reinterpret_cast<const Slot*>(buffer) - slots_.data());
}

template <class T>
typename BufferPool<T>::Slot& BufferPool<T>::pop_or_make() {
  // Acquire, here and on failure below: the `next` that the releaser of the first buffer stored
  // must be visible.
  std::uint64_t head = head_.load(std::memory_order_acquire);
  while (index_in(head) != kNone) {
    Slot& slot = slots_[index_in(head)];
    // Relaxed: where another thread pops and pushes this slot meanwhile, the value may be stale,
    // but then the count in head_ has changed and the exchange fails.
    const std::uint32_t next = slot.next.load(std::memory_order_relaxed);
    // Acquire: what the releaser did to the buffer must be visible, too; the slot may have come and
    // gone since the load above.
    if (head_.compare_exchange_weak(head, tagged(head, next), std::memory_order_acquire,
                                    std::memory_order_acquire)) {
      return slot;
    }
  }
  // Relaxed: the number is all that is shared; the slot is this thread's alone until it is
  // released.
  const std::uint32_t index = made_.fetch_add(1, std::memory_order_relaxed);
  RUBATO_CHECK(index < slots_.size(), "no more buffers are alive than a step has leaves");
  Slot& slot = slots_[index];
  slot.memory.reset(static_cast<T*>(::operator new[](values_ * sizeof(T), kAlignment)));
  slot.sum.values = {slot.memory.get(), values_};
  return slot;
}

template <class T>
void BufferPool<T>::push(std::uint32_t index) {
  // Relaxed: only a first guess, the exchange checks it.
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  do {
    slots_[index].next.store(index_in(head), std::memory_order_relaxed);
    // Release publishes the buffer and `next` to whoever pops it.
  } while (!head_.compare_exchange_weak(head, tagged(head, index), std::memory_order_release,
                                        std::memory_order_relaxed));
}

template <class T>
void BufferPool<T>::count_lease() {
  // Relaxed: statistics, read after the threads have been joined.
  const std::int64_t now = leased_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::int64_t high = high_water_.load(std::memory_order_relaxed);
  while (high < now && !high_water_.compare_exchange_weak(high, now, std::memory_order_relaxed)) {
  }
}

template class BufferPool<float>;
template class BufferPool<double>;

}  // namespace rubato
