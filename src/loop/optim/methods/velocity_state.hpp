#pragma once

#include <span>
#include <string_view>

#include <rubato/base/state.hpp>

namespace rubato {

inline constexpr std::string_view kVelocityName = "optimizer.velocity";

/// Visits the velocity of an optimizer; it is empty without momentum.
template <class T>
void visit_velocity(StateVisitor& state, std::span<T> velocity) {
  state.values(kVelocityName, velocity);
}

}  // namespace rubato
