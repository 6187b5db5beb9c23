#pragma once

#include <string>

#include "facts.hpp"

namespace rubato::doctor {

/// Facts about this process that can be found without libtorch: BLAS and its speed, malloc,
/// versions of libraries. Restricts OpenBLAS to the calling thread.
[[nodiscard]] TrainingProcess probe_this_process();

/// The text sent through the pipe between the program that trains and the one that asks it.
/// parse_probe() throws Error for text that to_json() has not written.
[[nodiscard]] std::string to_json(const TrainingProcess& process);
[[nodiscard]] TrainingProcess parse_probe(const std::string& text);

/// Runs a program and returns its output on stdout. Throws Error if it cannot be started, or does
/// not end with code 0.
[[nodiscard]] std::string output_of(const std::filesystem::path& program,
                                    const std::string& argument);

}  // namespace rubato::doctor
