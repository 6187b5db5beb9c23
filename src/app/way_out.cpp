#include "app/way_out.hpp"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "core/file.hpp"

namespace rubato::app {

namespace {

// Somebody may have removed the folder, of which a part was then made again.
bool can_go_on(const Run& run) {
  std::error_code ignored;
  return std::filesystem::exists(run.location().path() / "config.toml", ignored) &&
         !run.checkpoints().files().empty();
}

}  // namespace

std::string way_out(Run& run, std::string_view to_go_on) {
  if (run.location().path().empty()) return {};
  if (can_go_on(run)) {
    return fmt::format("\nthe checkpoints before it are kept; {}", to_go_on);
  }
  try {
    return fmt::format("\nthe weights after {} steps are in {}", run.trainer().result().steps,
                       run.write_weights().string());
  } catch (const OutputError&) {
    return "\nthere is no checkpoint to go on from";
  }
}

std::string way_out_of_step(Run& run, std::string_view to_go_on) {
  if (run.location().path().empty()) return {};
  const std::int64_t steps = run.trainer().result().steps;
  if (steps == 0) return "\nit was in the first step: nothing is lost";
  std::string why;
  try {
    if (run.trainer().has_state()) {
      return fmt::format("\nafter {} steps; the checkpoint is {}; {}", steps,
                         run.write_checkpoint().string(), to_go_on);
    }
  } catch (const std::exception& error) {
    why = fmt::format("\nno checkpoint of {} steps: {}", steps, error.what());
  }
  if (!can_go_on(run)) return why + "\nthere is no checkpoint to go on from";
  return fmt::format("{}\nthe checkpoints before it are kept; {}", why, to_go_on);
}

}  // namespace rubato::app
