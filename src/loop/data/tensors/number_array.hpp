#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// An array of numbers that lies in a file or in memory.
struct NumberArray {
  ElementType type = ElementType::f32;
  /// Empty for a single number.
  std::vector<std::int64_t> shape{};
  /// Row-major and little-endian, aligned to nothing.
  std::string_view bytes{};
  /// What they lie in.
  std::shared_ptr<const void> owner{};
};

/// The elements of an array of this shape; nothing where a dimension is negative or no memory could
/// hold them.
[[nodiscard]] bool count_elements(const std::vector<std::int64_t>& shape, std::uint64_t& elements);

/// The place behind the last element of an array that is not empty, in elements from its first on;
/// in numbers that cannot overflow.
[[nodiscard]] long double end_of_strided(const std::vector<std::int64_t>& shape,
                                         const std::vector<std::int64_t>& strides);

/// Numbers in memory whose neighbours lie `strides` elements apart, none of which is negative.
struct StridedArray {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};
  /// From the first element on.
  std::string_view bytes{};
};

/// The array in row-major order: the same bytes where they lie so already, otherwise a copy. `name`
/// says what it is. Throws Error where it reaches beyond its bytes, and MemoryError where the copy
/// would not fit.
[[nodiscard]] NumberArray dense(const StridedArray& array, const std::shared_ptr<const void>& owner,
                                std::string_view name);

}  // namespace rubato
