// The configuration file of `rubato train`: refused with an Error, or read to options that are
// written and read again as they are.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rubato/core/check.hpp>
#include <rubato/core/error.hpp>

#include "app/config_file.hpp"
#include "app/train_options.hpp"
#include "memory_file.hpp"

namespace {

using rubato::app::parse_train_options;
using rubato::fuzz::MemoryFile;

std::vector<std::string> arguments_for(const MemoryFile& file) {
  return {"--config", file.path().string()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file({data, size});
  try {
    for (const auto& entry : rubato::app::read_config(file.path())) {
      // What was read is what would be written for it.
      const auto again = rubato::app::parse_config(
          entry.key + " = " + rubato::app::toml_string(entry.value), "again");
      RUBATO_CHECK(again.size() == 1 && again.front().value == entry.value,
                   "a value is written as it is read");
    }
    const auto options = parse_train_options(arguments_for(file));
    const std::string config = to_config(*options, "/proc/self/fd");
    const MemoryFile written({reinterpret_cast<const std::uint8_t*>(config.data()), config.size()});
    const auto again = parse_train_options(arguments_for(written));
    RUBATO_CHECK(to_config(*again, "/proc/self/fd") == config, "options are written as they are");
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
