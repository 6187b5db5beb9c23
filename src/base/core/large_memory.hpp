#pragma once

#include <cstddef>
#include <memory>

namespace rubato {

/// Allocates `bytes` bytes for data that are written once and read often. They are aligned to a
/// cache line and not cleared by the process, so that a page costs nothing until it is written.
/// From 4 to 64 MiB lie in huge pages where the system has any, which are 512 times fewer
/// (docs/adr/0086). Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<void> large_memory(std::size_t bytes);

}  // namespace rubato
