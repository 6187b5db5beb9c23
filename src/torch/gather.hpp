#pragma once

#include <cstdint>
#include <span>

#include <ATen/Functions.h>

namespace rubato {

/// Rows of a tensor.
[[nodiscard]] inline at::Tensor gather(const at::Tensor& all,
                                       std::span<const std::int64_t> samples) {
  // from_blob() takes no pointer to const; index_select() only reads.
  auto* indices =
      const_cast<std::int64_t*>(samples.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return all.index_select(
      0, at::from_blob(indices, {static_cast<std::int64_t>(samples.size())}, at::kLong));
}

}  // namespace rubato
