#include <algorithm>

#include <rubato/loop/reducer.hpp>

#include "base/core/check.hpp"

namespace rubato {

template <class T>
BufferPool<T>::BufferPool(std::size_t values, std::size_t max_buffers, std::size_t squares)
    : values_(values), squares_(squares), slots_(max_buffers), free_(max_buffers) {
  RUBATO_CHECK(max_buffers < 0xffffffff, "buffers are counted in 32 bits");
}

template <class T>
PartialSum<T>* BufferPool<T>::acquire() {
  PartialSum<T>& sum = take().sum;
  count_lease();
  std::fill(sum.values.begin(), sum.values.end(), T{0});
  std::fill(sum.squares.begin(), sum.squares.end(), PartialSum<T>::kNotTaken);
  sum.scalars = {};
  return &sum;
}

template <class T>
void BufferPool<T>::release(PartialSum<T>* buffer) {
  leased_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a statistic
  free_.push(static_cast<std::uint32_t>(id_of(buffer)));
}

template <class T>
void BufferPool<T>::reclaim_all() {
  free_.clear();
  // Relaxed: no other thread runs here.
  leased_.store(0, std::memory_order_relaxed);
  for (std::uint32_t i = made_.load(std::memory_order_relaxed); i-- > 0;) free_.push(i);
}

template <class T>
SumId BufferPool<T>::id_of(const PartialSum<T>* buffer) const {
  // `sum` is the first member of a slot.
  return SumId{static_cast<std::uint32_t>(reinterpret_cast<const Slot*>(buffer) - slots_.data())};
}

template <class T>
typename BufferPool<T>::Slot& BufferPool<T>::take() {
  if (const auto index = free_.pop()) return slots_[*index];
  // Relaxed: nothing but the number is shared; the slot belongs to this thread until it is
  // released.
  const std::uint32_t index = made_.fetch_add(1, std::memory_order_relaxed);
  RUBATO_CHECK(index < slots_.size(), "no more buffers are alive than a step has leaves");
  Slot& slot = slots_[index];
  slot.memory.reset(static_cast<T*>(::operator new[](values_ * sizeof(T), kAlignment)));
  slot.squares = std::make_unique<double[]>(squares_);
  slot.sum.values = {slot.memory.get(), values_};
  slot.sum.squares = {slot.squares.get(), squares_};
  return slot;
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
