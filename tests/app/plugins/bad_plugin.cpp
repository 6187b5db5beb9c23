// Plug-ins that are refused: BAD says why.

#include <stdexcept>

#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run_configuration.hpp>

#define OLDER 1
#define THROWS 2
#define THROWS_NUMBER 3
#define TAKEN 4
#define NO_ENTRY 5

#if BAD == OLDER
#undef RUBATO_PLUGIN_ABI
#define RUBATO_PLUGIN_ABI "0.0.9-0123456789ab"
#endif

#if BAD != NO_ENTRY
RUBATO_PLUGIN(extensions) {
#if BAD == THROWS
  throw std::runtime_error("the licence has expired");
#elif BAD == THROWS_NUMBER
  throw 7;
#elif BAD == TAKEN
  extensions.samplers.add("in-order", [](rubato::Spec&) { return rubato::Sampler(); });
#endif
  static_cast<void>(extensions);
}
#endif
