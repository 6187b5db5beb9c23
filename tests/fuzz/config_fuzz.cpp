// The configuration file of `rubato train`: refused with an Error, or read to a configuration that
// is written and read again as it is, and then read from a file and checked as the program does.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/check.hpp"
#include "memory_file.hpp"

namespace {

using rubato::RunConfiguration;

std::optional<RunConfiguration> read(std::string_view text) {
  try {
    return rubato::parse_configuration(text, "text");
  } catch (const rubato::Error&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto configuration = read({reinterpret_cast<const char*>(data), size});
  // The program reads it in the same way, and takes a hundred times as long: it makes its options.
  if (!configuration) return 0;
  const auto again = read(rubato::to_toml(*configuration));
  RUBATO_CHECK(again == configuration, "a configuration is written as it is");
  const rubato::fuzz::MemoryFile file({data, size});
  try {
    require_valid(rubato::read_configuration(file.path(), {}, RunConfiguration()));
  } catch (const rubato::Error&) {
    // Options that contradict each other.
  }
  return 0;
}
