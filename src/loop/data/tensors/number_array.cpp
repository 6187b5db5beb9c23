#include "number_array.hpp"

#include <cstring>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/memory.hpp"

namespace rubato {

namespace {

// The stride of a dimension with one element does not matter.
bool is_dense(const StridedArray& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.shape.size(); i-- > 0;) {
    if (array.shape[i] > 1 && array.strides[i] != expected) return false;
    expected *= array.shape[i];
  }
  return true;
}

std::shared_ptr<const std::string> copy_of(const StridedArray& array, std::uint64_t elements) {
  const std::size_t size = size_of(array.type);
  auto copy = std::make_shared<std::string>(static_cast<std::size_t>(elements) * size, '\0');
  std::vector<std::int64_t> index(array.shape.size(), 0);
  std::int64_t from = 0;
  for (std::uint64_t to = 0; to < elements; ++to) {
    std::memcpy(copy->data() + to * size,
                array.bytes.data() + from * static_cast<std::int64_t>(size), size);
    // The index advances in the last dimension first.
    for (std::size_t i = index.size(); i-- > 0;) {
      from += array.strides[i];
      if (++index[i] < array.shape[i]) break;
      from -= index[i] * array.strides[i];
      index[i] = 0;
    }
  }
  return copy;
}

}  // namespace

bool count_elements(const std::vector<std::int64_t>& shape, std::uint64_t& elements) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 16;
  bool empty = false;
  elements = 1;
  for (const std::int64_t length : shape) {
    if (length < 0) return false;
    if (length == 0) empty = true;
    const auto factor = static_cast<std::uint64_t>(length);
    if (factor > 0 && elements > kMost / factor) return false;
    if (factor > 0) elements *= factor;
  }
  if (empty) elements = 0;
  return true;
}

long double end_of_strided(const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& strides) {
  long double last = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    last += static_cast<long double>(shape[i] - 1) * static_cast<long double>(strides[i]);
  }
  return last;
}

NumberArray dense(const StridedArray& array, const std::shared_ptr<const void>& owner,
                  std::string_view name) {
  std::uint64_t elements = 0;
  if (!count_elements(array.shape, elements)) {
    throw Error(
        fmt::format("{} has a shape that no memory can hold; accepted: fewer elements", name));
  }
  NumberArray result{.type = array.type, .shape = array.shape};
  if (elements == 0) return result;
  const std::size_t held = array.bytes.size() / size_of(array.type);
  if (end_of_strided(array.shape, array.strides) > static_cast<long double>(held)) {
    throw Error(
        fmt::format("{} reaches beyond its data in the file; accepted: a whole file", name));
  }
  // Expanded tensors are refused, so that no small file needs much memory.
  if (elements > held) {
    throw Error(
        fmt::format("{} is expanded: it has more elements than the file holds; accepted: "
                    "a tensor that was saved as .contiguous()",
                    name));
  }
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(array.type);
  if (is_dense(array)) {
    result.bytes = array.bytes.substr(0, bytes);
    result.owner = owner;
    return result;
  }
  require_memory(static_cast<double>(bytes),
                 fmt::format("{}, copied into row-major order, needs", name),
                 "an array that is saved in that order is not copied");
  const auto copy = copy_of(array, elements);
  result.bytes = *copy;
  result.owner = copy;
  return result;
}

}  // namespace rubato
