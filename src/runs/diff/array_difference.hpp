#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// An array of numbers that lies elsewhere.
struct ArrayView {
  std::string_view name;
  ElementType type = ElementType::f32;
  std::span<const std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Views of arrays, which must outlive them.
[[nodiscard]] std::vector<ArrayView> views_of(std::span<const NamedArray> arrays);
/// Views of all arrays of a state, which must outlive them.
[[nodiscard]] std::vector<ArrayView> views_of(const State& state);
/// Views of what the digest of a step covers in a trainer's state, which must outlive them:
/// parameters, then buffers, then what the optimizer and its parts remember.
[[nodiscard]] std::vector<ArrayView> digested_views_of(const State& state);

/// The first element in which two lists of arrays differ.
struct DifferentElement {
  std::string array{};
  /// The index in the array, by dimension.
  std::vector<std::int64_t> index{};
  double a = 0;
  double b = 0;
  /// Their distance in units in the last place, that is, how many numbers of the type lie between
  /// them, and one; empty for whole numbers and NaN.
  std::optional<std::uint64_t> ulps{};
  /// The number of elements that differ, in all arrays together.
  std::int64_t elements = 0;
  /// If the arrays cannot be compared, the reason: "is only in one of them". The members above, but
  /// for the name, then mean nothing.
  std::string incomparable{};
};

/// Compares the bytes of two lists of arrays, which have the same order; empty if all are equal.
[[nodiscard]] std::optional<DifferentElement> first_difference(std::span<const ArrayView> a,
                                                               std::span<const ArrayView> b);

/// The same for the arrays of a name that both have.
[[nodiscard]] std::optional<DifferentElement> first_difference_in_both(
    std::span<const ArrayView> a, std::span<const ArrayView> b);

/// Text for people: "fc.weight[3,0]: 0.5 and 0.25, 8388608 units in the last place; 12 elements
/// differ".
[[nodiscard]] std::string to_text(const DifferentElement& element);

/// The Euclidean norm of the difference of arrays of equal shapes.
[[nodiscard]] double distance_of(std::span<const NamedArray> a, std::span<const NamedArray> b);

}  // namespace rubato
