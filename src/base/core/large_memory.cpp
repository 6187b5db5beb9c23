#include "large_memory.hpp"

#include <cstdint>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace rubato {

namespace {

// The size of a huge page on x86-64, and on ARM with small pages of 4 KiB. Where they are larger,
// the system ignores the advice or uses what fits.
constexpr std::size_t kHugePage = std::size_t{1} << 21U;
// A virtual machine may give free memory back to its host, in huge pages, each of which then takes
// 2 ms to return. That is a bad bargain for data that are read from a large file anyway.
constexpr std::size_t kMostInHugePages = std::size_t{1} << 26U;

}  // namespace

std::shared_ptr<void> large_memory(std::size_t bytes) {
  if (bytes < 2 * kHugePage) {
    constexpr std::align_val_t kLine{64};
    return {::operator new(bytes, kLine), [](void* memory) { ::operator delete(memory, kLine); }};
  }
  // The mapping is larger than the data so that these can begin at a huge page; what is not written
  // has no memory.
  const std::size_t mapped = bytes + kHugePage;
  void* const begin =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<void> owner(begin, [mapped](void* memory) { munmap(memory, mapped); });
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t unused = (kHugePage - address % kHugePage) % kHugePage;
  char* const data = static_cast<char*>(begin) + unused;
  // Without huge pages everything works as well.
  if (bytes <= kMostInHugePages) static_cast<void>(madvise(data, bytes, MADV_HUGEPAGE));
  return {std::move(owner), data};
}

}  // namespace rubato
