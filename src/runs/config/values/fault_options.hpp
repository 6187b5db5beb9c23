#pragma once

#include <string>
#include <vector>

#include <rubato/loop/faults.hpp>

namespace rubato {

/// Parses "core=K,step=N" or "core=K,step=N,substep=M", several joined with '+'. Empty text means
/// none.
[[nodiscard]] std::vector<Fault> parse_faults(const std::string& text);

/// Parses "rate=X" or "rate=X,seed=N" as the random part of FaultOptions.
[[nodiscard]] FaultOptions parse_random_faults(const std::string& text);

/// Parses "core=K,factor=F", several joined with '+'.
[[nodiscard]] std::vector<Straggler> parse_stragglers(const std::string& text);

}  // namespace rubato
