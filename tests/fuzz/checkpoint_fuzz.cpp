// parse_state(): refuses bytes with an Error, or reads a state that is written and read again as it
// is. As the checksum would keep everything else out of reach, the input is tried with the right
// one behind it, too. What a state says of the rules must be refused by them, or taken.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>

#include "base/core/check.hpp"
#include "base/state/sha256.hpp"

namespace {

template <class Action>
void may_refuse(const Action& action) {
  try {
    action();
  } catch (const rubato::Error&) {
    // As it should be.
  }
}

void read(std::string_view bytes) {
  const rubato::State state = rubato::parse_state(bytes, "checkpoint");
  RUBATO_CHECK(rubato::parse_state(rubato::state_bytes(state), "again") == state,
               "a state is written as it is read");
  for (const auto& array : state.arrays()) {
    may_refuse([&] {
      const auto numbers = state.values<double>(array.first);
      for (const char* rule : {"adascale", "lbsgd", "linear:ramp=3"}) {
        may_refuse([&] { rubato::load_numbers(*rubato::RuleChoice(rule).make(), numbers, rule); });
      }
      for (const char* schedule : {"plateau", "plateau+step:every=2"}) {
        may_refuse([&] {
          rubato::load_numbers(*rubato::ScheduleChoice(schedule).make({}), numbers, schedule);
        });
      }
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  may_refuse([&] { read(bytes); });
  for (const std::uint8_t byte : rubato::Sha256::digest_of(bytes)) {
    bytes += static_cast<char>(byte);
  }
  may_refuse([&] { read(bytes); });
  return 0;
}
