#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace rubato {

/// The alignment in bytes that suits the vectors of every instruction set.
inline constexpr std::size_t kVectorAlignment = 64;

/// Values that begin at a multiple of 64 bytes; initially 0.
///
/// T is a number.
template <class T>
class AlignedValues {
 public:
  AlignedValues() = default;
  explicit AlignedValues(std::size_t size)
      : memory_(static_cast<T*>(::operator new[](size * sizeof(T), kAlignment))), size_(size) {
    std::fill_n(memory_.get(), size, T{0});
  }

  [[nodiscard]] T* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<T> values() const { return {memory_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{kVectorAlignment};
  struct FreeMemory {
    void operator()(T* memory) const { ::operator delete[](memory, kAlignment); }
  };

  std::unique_ptr<T[], FreeMemory> memory_;
  std::size_t size_ = 0;
};

}  // namespace rubato
