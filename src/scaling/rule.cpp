#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {

void Rule::load_state(std::span<const double> state) {
  if (state.empty()) return;
  throw Error(
      fmt::format("rule {} has no state, but {} numbers were kept of it", name(), state.size()));
}

}  // namespace rubato
