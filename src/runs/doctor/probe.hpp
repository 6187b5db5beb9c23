#pragma once

#include <string>

#include "facts.hpp"

namespace rubato::doctor {

/// What this process finds itself with, as far as it can be said without libtorch: BLAS and its
/// speed, malloc, versions of libraries. Lets an OpenBLAS compute on the calling thread only.
[[nodiscard]] TrainingProcess probe_this_process();

/// For the pipe between the program that trains and the one that asks it. parse_probe() throws
/// Error for what to_json() has not written.
[[nodiscard]] std::string to_json(const TrainingProcess& process);
[[nodiscard]] TrainingProcess parse_probe(const std::string& text);

/// Runs a program and returns what it prints to stdout. Throws Error where it cannot be started, or
/// ends otherwise than with code 0.
[[nodiscard]] std::string output_of(const std::filesystem::path& program,
                                    const std::string& argument);

}  // namespace rubato::doctor
