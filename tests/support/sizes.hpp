#pragma once

#include <cstdlib>
#include <utility>

#include "support/sanitizers.hpp"

namespace rubato::test {

// How many cases a test tries that draws or repeats them: few in each landing and under the
// sanitizers, many where the environment asks for them, as `.ci/run --all` does.
template <class Count>
Count cases(Count few, Count many) {
  return std::getenv("RUBATO_LONG_TESTS") != nullptr && !kSanitized ? std::move(many)
                                                                    : std::move(few);
}

}  // namespace rubato::test
