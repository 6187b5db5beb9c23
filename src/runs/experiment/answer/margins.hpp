#pragma once

#include "answer.hpp"

namespace rubato {

/// Tests the cells of each condition against their baselines and against the best of them, by
/// Answer::margin; does nothing without one.
void test_margins(Answer& answer);

}  // namespace rubato
