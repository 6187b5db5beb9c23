#include <cmath>

#include <rubato/steps/step_source.hpp>

namespace rubato {

void ClockTime::visit_state(NumberVisitor& numbers) {
  for (double* const number :
       {&seconds, &core_seconds, &money, &idle_seconds, &lost_seconds, &restart_seconds}) {
    numbers.number(*number);
    numbers.require(std::isfinite(*number) && *number >= 0);
  }
  numbers.count(restarts);
}

}  // namespace rubato
