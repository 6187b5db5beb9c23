// Arrays are compared by their bytes, so that NaNs of the same bits are equal and 0 differs from
// -0, and elements are searched only in an array whose bytes differ. The first different element is
// described, and all are counted. The distance in units in the last place is the difference of two
// bit patterns, mapped to whole numbers that have the order of the numbers (place_in_order()).

#include "array_difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/vectors.hpp"
#include "loop/data/sample_set.hpp"
#include "loop/train/step/state_digest.hpp"

namespace rubato {

namespace {

// Numbers of a type are in the order of these whole numbers, and neighbours have neighbours.
template <class Bits>
std::int64_t place_in_order(Bits bits) {
  const std::int64_t place = bits;
  return place >= 0 ? place : std::numeric_limits<Bits>::min() - place;
}

template <class Bits>
std::uint64_t ulps_between(Bits a, Bits b) {
  const auto [from, to] = std::minmax({place_in_order(a), place_in_order(b)});
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::vector<std::int64_t> index_in(std::span<const std::int64_t> shape, std::size_t place) {
  std::vector<std::int64_t> index(shape.size());
  auto left = static_cast<std::int64_t>(place);
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = left % shape[i];
    left /= shape[i];
  }
  return index;
}

// Compares arrays of equal types and shapes, whose elements have as many bytes as Bits, and notes
// the first difference unless there is one already.
template <class Bits>
void compare(const ArrayView& a, const ArrayView& b, std::optional<DifferentElement>& first) {
  // The bytes of truth values may be others than 0 and 1 in a damaged file.
  const ElementType type = a.type == ElementType::boolean ? ElementType::u8 : a.type;
  const auto number = [&](const Bits& bits) {
    double value = 0;
    read_numbers(type, {reinterpret_cast<const char*>(&bits), sizeof(bits)}, &value);
    return value;
  };
  const std::size_t size = a.bytes.size() / sizeof(Bits);
  for (std::size_t i = 0; i < size; ++i) {
    Bits of_a{};
    Bits of_b{};
    std::memcpy(&of_a, a.bytes.data() + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&of_b, b.bytes.data() + i * sizeof(Bits), sizeof(Bits));
    if (of_a == of_b) continue;
    if (!first) {
      first = DifferentElement{.array = std::string(a.name),
                               .index = index_in(a.shape, i),
                               .a = number(of_a),
                               .b = number(of_b)};
      const bool has_ulps = is_real(type) && !std::isnan(first->a) && !std::isnan(first->b);
      if (has_ulps) first->ulps = ulps_between(of_a, of_b);
    }
    ++first->elements;
  }
}

void compare(const ArrayView& a, const ArrayView& b, std::optional<DifferentElement>& first) {
  if (std::ranges::equal(a.bytes, b.bytes)) return;
  switch (size_of(a.type)) {
    case sizeof(std::int64_t):
      return compare<std::int64_t>(a, b, first);
    case sizeof(std::int32_t):
      return compare<std::int32_t>(a, b, first);
    case sizeof(std::int16_t):
      return compare<std::int16_t>(a, b, first);
    default:
      return compare<std::uint8_t>(a, b, first);
  }
}

DifferentElement incomparable(std::string_view array, std::string why) {
  return {.array = std::string(array), .incomparable = std::move(why)};
}

}  // namespace

std::vector<ArrayView> views_of(std::span<const NamedArray> arrays) {
  return vector_of(arrays, [](const NamedArray& array) {
    return ArrayView{.name = array.name,
                     .type = array.type,
                     .shape = array.shape,
                     .bytes = std::as_bytes(array.bytes())};
  });
}

std::vector<ArrayView> views_of(const State& state) {
  return vector_of(state.arrays(), [](const auto& named) {
    const auto& [name, array] = named;
    return ArrayView{.name = name,
                     .type = array.type,
                     .shape = array.shape,
                     .bytes = std::as_bytes(std::span(array.bytes))};
  });
}

std::vector<ArrayView> digested_views_of(const State& state) {
  const std::vector<ArrayView> all = views_of(state);
  std::vector<ArrayView> views;
  for (const std::string_view prefix : digested_prefixes()) {
    std::ranges::copy_if(all, std::back_inserter(views),
                         [&](const ArrayView& view) { return view.name.starts_with(prefix); });
  }
  return views;
}

std::optional<DifferentElement> first_difference(std::span<const ArrayView> a,
                                                 std::span<const ArrayView> b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i].name != b[i].name) {
      return incomparable(i < a.size() ? a[i].name : b[i].name, "is only in one of them");
    }
    if (a[i].type != b[i].type) {
      return incomparable(a[i].name, fmt::format("has the types {} and {}", name_of(a[i].type),
                                                 name_of(b[i].type)));
    }
    if (!std::ranges::equal(a[i].shape, b[i].shape)) {
      return incomparable(a[i].name,
                          fmt::format("has the shapes [{}] and [{}]", fmt::join(a[i].shape, ","),
                                      fmt::join(b[i].shape, ",")));
    }
  }
  std::optional<DifferentElement> first;
  for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], first);
  return first;
}

std::optional<DifferentElement> first_difference_in_both(std::span<const ArrayView> a,
                                                         std::span<const ArrayView> b) {
  const auto in = [](std::span<const ArrayView> some, std::span<const ArrayView> others) {
    std::vector<ArrayView> found;
    std::ranges::copy_if(some, std::back_inserter(found), [&](const ArrayView& view) {
      return std::ranges::find(others, view.name, &ArrayView::name) != others.end();
    });
    return found;
  };
  return first_difference(in(a, b), in(b, a));
}

std::string to_text(const DifferentElement& element) {
  if (!element.incomparable.empty()) return element.array + " " + element.incomparable;
  std::string text = fmt::format("{}[{}]: {:.9g} and {:.9g}", element.array,
                                 fmt::join(element.index, ","), element.a, element.b);
  if (element.ulps) {
    text +=
        fmt::format(", {} unit{} in the last place", *element.ulps, *element.ulps == 1 ? "" : "s");
  }
  return text + (element.elements == 1 ? "; no other element differs"
                                       : fmt::format("; {} elements differ", element.elements));
}

double distance_of(std::span<const NamedArray> a, std::span<const NamedArray> b) {
  double squares = 0;
  const auto add = [&]<class T>(std::span<T> of_a, std::span<T> of_b) {
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      const double difference = static_cast<double>(of_a[i]) - static_cast<double>(of_b[i]);
      squares += difference * difference;
    }
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].type == ElementType::f32) add(a[i].values<float>(), b[i].values<float>());
    if (a[i].type == ElementType::f64) add(a[i].values<double>(), b[i].values<double>());
  }
  return std::sqrt(squares);
}

}  // namespace rubato
