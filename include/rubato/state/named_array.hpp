#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/state/state.hpp>

namespace rubato {

/// An array of numbers that lies elsewhere, and its name: a parameter of a model, say.
struct NamedArray {
  std::string name{};
  ElementType type = ElementType::f32;
  /// Empty for a single number.
  std::vector<std::int64_t> shape{};
  /// Row-major and dense.
  void* data = nullptr;

  /// Elements.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// The elements. Throws Error when they are not of type T.
  template <StateElement T>
  [[nodiscard]] std::span<T> values() const {
    require_type(element_type_of<T>());
    return {static_cast<T*>(data), size()};
  }

 private:
  void require_type(ElementType asked) const;
};

/// Puts the values of an array into a state, under `prefix` and its name.
void put_array(State& state, std::string_view prefix, const NamedArray& array);
/// Copies them back. Throws Error when the state's are of another type or shape.
void read_array(const State& state, std::string_view prefix, const NamedArray& array);
/// One of the two, as the visitor saves or loads.
void visit_array(StateVisitor& state, std::string_view prefix, const NamedArray& array);

/// The SHA-256, in hexadecimal, of the values of `arrays`: their bytes as this machine holds them,
/// one array after the other. The fingerprint of a training result.
[[nodiscard]] std::string sha256_of(std::span<const NamedArray> arrays);

/// Copies of arrays that go on changing.
class ArrayCopies {
 public:
  ArrayCopies() = default;
  explicit ArrayCopies(std::span<const NamedArray> arrays);

  /// Of the same names, types and shapes; valid for as long as this lives and is not assigned to.
  [[nodiscard]] const std::vector<NamedArray>& arrays() const { return arrays_; }

 private:
  std::vector<NamedArray> arrays_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace rubato
