#include <cstring>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

#include "sha256.hpp"

namespace rubato {

std::size_t NamedArray::size() const {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

void NamedArray::require_type(ElementType asked) const {
  if (type == asked) return;
  throw Error(fmt::format("'{}' holds {}, and {} was asked for; accepted: {}", name, name_of(type),
                          name_of(asked), name_of(type)));
}

std::span<std::byte> NamedArray::bytes() const {
  return {static_cast<std::byte*>(data), size() * size_of(type)};
}

void put_array(State& state, std::string_view prefix, const NamedArray& array) {
  const std::span<const std::byte> bytes = array.bytes();
  StateArray copy{.type = array.type, .shape = array.shape};
  if (!bytes.empty()) copy.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  state.put_array(std::string(prefix) + array.name, std::move(copy));
}

void read_array(const State& state, std::string_view prefix, const NamedArray& array) {
  const std::string name = std::string(prefix) + array.name;
  const StateArray& found = state.array(name);
  if (found.type != array.type || found.shape != array.shape) {
    throw Error(fmt::format("the state's '{}' is {} of shape [{}], the model's {} of shape [{}]",
                            name, name_of(found.type), fmt::join(found.shape, ", "),
                            name_of(array.type), fmt::join(array.shape, ", ")));
  }
  if (!found.bytes.empty()) std::memcpy(array.data, found.bytes.data(), found.bytes.size());
}

void visit_array(StateVisitor& state, std::string_view prefix, const NamedArray& array) {
  if (state.loading()) {
    read_array(*state.from_, state.path(prefix), array);
  } else {
    put_array(*state.to_, state.path(prefix), array);
  }
}

std::string sha256_of(std::span<const NamedArray> arrays) {
  Sha256 sha;
  for (const NamedArray& array : arrays) sha.add(array.bytes().data(), array.bytes().size());
  return sha.hex();
}

ArrayCopies::ArrayCopies(std::span<const NamedArray> arrays)
    : arrays_(arrays.begin(), arrays.end()) {
  for (NamedArray& array : arrays_) {
    const std::span<const std::byte> bytes = array.bytes();
    // std::byte[] from new is aligned for every type of element.
    memory_.push_back(std::make_unique<std::byte[]>(bytes.size()));
    if (!bytes.empty()) std::memcpy(memory_.back().get(), bytes.data(), bytes.size());
    array.data = memory_.back().get();
  }
}

}  // namespace rubato
