#pragma once

#include <string>
#include <string_view>

#include <rubato/run/run.hpp>

// What is left of a run that an exception has ended, as a line for the user that begins with a
// line break, behind what went wrong; empty for a run that is kept nowhere. `to_go_on` says how to
// go on with it: "to go on: rubato train --resume runs/first".

namespace rubato::app {

/// Of a run whose output could not be written. Without a checkpoint it writes the weights, if that
/// can be done.
[[nodiscard]] std::string way_out(Run& run, std::string_view to_go_on);

/// Of a run in whose step memory could not be had, or another host was lost. Writes the checkpoint
/// of the step before, if that can be done; else it says why not.
[[nodiscard]] std::string way_out_of_step(Run& run, std::string_view to_go_on);

}  // namespace rubato::app
