#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// An array of numbers in a file or in memory.
struct NumberArray {
  ElementType type = ElementType::f32;
  /// The shape; empty for a single number.
  std::vector<std::int64_t> shape{};
  /// The numbers, row-major and little-endian, without alignment.
  std::string_view bytes{};
  /// The owner of the memory.
  std::shared_ptr<const void> owner{};
};

/// Counts the elements of an array of this shape; returns false if a dimension is negative or no
/// memory could hold them.
[[nodiscard]] bool count_elements(const std::vector<std::int64_t>& shape, std::uint64_t& elements);

/// The end of an array that is not empty, in elements from its first; a long double cannot
/// overflow.
[[nodiscard]] long double end_of_strided(const std::vector<std::int64_t>& shape,
                                         const std::vector<std::int64_t>& strides);

/// Numbers in memory with `strides` in elements, none of which is negative.
struct StridedArray {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};
  /// The memory from the first element on.
  std::string_view bytes{};
};

/// Returns the array in row-major order: the same bytes if it has that order already, otherwise a
/// copy. Messages name it as `name`. Throws Error if it reaches beyond its bytes, and MemoryError
/// if the copy would not fit.
[[nodiscard]] NumberArray dense(const StridedArray& array, const std::shared_ptr<const void>& owner,
                                std::string_view name);

/// Parses the array in the bytes of a .npy file of version 1 to 3, which `owner` holds. Messages
/// name it as `name` ("data.npz: 'x'"). The numbers are copied if they are in column-major order.
/// Throws Error.
[[nodiscard]] NumberArray parse_npy(std::string_view bytes,
                                    const std::shared_ptr<const void>& owner,
                                    const std::string& name);

/// Returns the size of a .npy file in bytes, according to its header. Throws Error.
[[nodiscard]] std::uint64_t npy_size(std::string_view beginning, const std::string& name);

}  // namespace rubato
