#pragma once

#include <span>
#include <string_view>

#include "command_line.hpp"

// Options that do nothing.
//
// The rule for all commands: would the user want this run? Where an argument can do nothing because
// of the other options (--min-delta where nothing stops early), they meant another run, and it is
// an Error before anything is trained. Where the run is what they meant and the argument a
// precaution that turns out not to be needed (--cores for a trace that always says, a fault in a
// step that does not come, --log-steps on a terminal), a line on stderr says so.
//
// Only arguments are judged. A configuration lists all options, as to_toml() writes it, and what
// is in it may do nothing: an argument may have switched off what it is for.

namespace rubato::app {

/// An option that does nothing where `idle` holds: why, and with what it would do something.
struct IdleOption {
  std::string_view option;
  bool idle = false;
  std::string_view why;
  std::string_view accepted;
};

/// Throws Error for the first of `options` that is idle and was given in the arguments.
void require_none_idle(const CommandLine& line, std::span<const IdleOption> options);

}  // namespace rubato::app
