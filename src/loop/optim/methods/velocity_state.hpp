#pragma once

#include <span>
#include <string_view>

#include <rubato/base/state.hpp>

namespace rubato {

inline constexpr std::string_view kVelocityName = "optimizer.velocity";

/// The velocity of an optimizer with momentum; empty where there is none.
template <class T>
void visit_velocity(StateVisitor& state, std::span<T> velocity) {
  state.values(kVelocityName, velocity);
}

}  // namespace rubato
