#pragma once

#include <span>
#include <vector>

#include <rubato/state/state.hpp>

namespace rubato {

inline constexpr std::string_view kVelocityName = "optimizer.velocity";

/// The velocity of an optimizer with momentum; empty where there is none.
template <class T>
void save_velocity(const std::vector<T>& velocity, State& state) {
  state.put(kVelocityName, std::span<const T>(velocity));
}
template <class T>
void load_velocity(const State& state, std::vector<T>& velocity) {
  state.read(kVelocityName, std::span<T>(velocity));
}

}  // namespace rubato
