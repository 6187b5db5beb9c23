#pragma once

#include <span>
#include <string_view>

#include "command_line.hpp"

namespace rubato::app {

// Options that have no effect.
//
// The rule for all commands is: would the user want this run? If an argument has no effect because
// of the other options (--min-delta where nothing stops early), the user meant another run, and it
// is an Error before anything is trained. If the run is what the user meant and the argument is a
// precaution that turns out to be unnecessary (--cores for a trace that always has them, a fault in
// a step that is never reached, --log-steps on a terminal), a line on stderr says so.
//
// Only arguments are judged. A configuration lists all options, as to_toml() writes it, and some of
// them may have no effect because an argument has switched off what they are for.

/// An option that has no effect if `idle` is true, with the reason, and what would give it one.
struct IdleOption {
  std::string_view option;
  bool idle = false;
  std::string_view why;
  std::string_view accepted;
};

/// Throws Error for the first of `options` that is idle and was given in the arguments.
void require_none_idle(const CommandLine& line, std::span<const IdleOption> options);

}  // namespace rubato::app
