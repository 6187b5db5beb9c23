#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <rubato/base/state.hpp>

namespace rubato::test {

/// May change an entry of a state, a StateArray or a text; returns false to leave it out.
template <class Value>
using ChangeEntry = std::function<bool(const std::string& name, Value& value)>;

/// The state with other entries.
[[nodiscard]] inline State with_changes(const State& state,
                                        const ChangeEntry<StateArray>& change_array,
                                        const ChangeEntry<std::string>& change_text = {}) {
  State changed;
  for (auto [name, array] : state.arrays()) {
    if (change_array(name, array)) changed.put_array(name, std::move(array));
  }
  for (auto [name, text] : state.texts()) {
    if (!change_text || change_text(name, text)) changed.put_text(name, std::move(text));
  }
  return changed;
}

/// The state without the array of that name.
[[nodiscard]] inline State without_array(const State& state, std::string_view name) {
  return with_changes(state, [&](const auto& entry, auto&) { return entry != name; });
}

/// Flips a bit of the arrays in a file whose names begin so; its checksum is right all the same.
inline void flip_bits(const std::filesystem::path& file, std::string_view begin) {
  write_state(file, with_changes(read_state(file), [&](const auto& name, auto& array) {
                if (name.starts_with(begin)) array.bytes.front() ^= 1;
                return true;
              }));
}

}  // namespace rubato::test
