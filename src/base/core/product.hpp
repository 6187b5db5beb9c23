#pragma once

#include <vector>

namespace rubato {

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
