#pragma once

#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace rubato {

/// Returns what `of`, a function or a member, gives for each item of a range, in their order; as an
/// `Item` if that is named.
template <class Item = void, class Range, class Of>
[[nodiscard]] auto vector_of(const Range& items, const Of& of) {
  using Given = std::decay_t<decltype(std::invoke(of, *std::begin(items)))>;
  std::vector<std::conditional_t<std::is_void_v<Item>, Given, Item>> all;
  if constexpr (requires { std::size(items); }) all.reserve(std::size(items));
  for (const auto& item : items) all.emplace_back(std::invoke(of, item));
  return all;
}

/// Returns pointers to the items of a range for which `is_wanted` is true, in their order.
template <class Range, class Predicate>
[[nodiscard]] auto pointers_to(Range& items, const Predicate& is_wanted) {
  std::vector<decltype(&*std::begin(items))> wanted;
  for (auto& item : items) {
    if (is_wanted(item)) wanted.push_back(&item);
  }
  return wanted;
}

/// Combines every item with every value, the values varying fastest: adds one axis to a Cartesian
/// product. `add(Item&, const Value&)` sets the value in a copy of the item. Without values the
/// result is empty.
template <class Item, class Value, class Add>
[[nodiscard]] std::vector<Item> each_with_each(const std::vector<Item>& items,
                                               const std::vector<Value>& values, const Add& add) {
  std::vector<Item> all;
  all.reserve(items.size() * values.size());
  for (const Item& item : items) {
    for (const Value& value : values) {
      all.push_back(item);
      add(all.back(), value);
    }
  }
  return all;
}

}  // namespace rubato
