#pragma once

#include <string>

#include <rubato/train/training_error.hpp>

namespace rubato {

/// In a handler: throws the exception being handled as a TrainingError of that phase and place, or
/// as it is where it says that there is no memory.
[[noreturn]] void rethrow_with_place(Phase phase, const std::string& place);

}  // namespace rubato
