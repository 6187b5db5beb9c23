#pragma once

#include <vector>

namespace rubato {

/// Every item with every value, the values changing faster: one axis more of a Cartesian product.
/// `add(Item&, const Value&)` gives a copy of an item its value. Where there is no value there is
/// no item.
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
