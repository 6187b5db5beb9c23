#pragma once

#include <string>
#include <vector>

#include <rubato/loop/faults.hpp>

namespace rubato {

/// "core=K,step=N" or "core=K,step=N,substep=M"; several with '+' between them. Empty text is none.
[[nodiscard]] std::vector<Fault> parse_faults(const std::string& text);

/// "rate=X" or "rate=X,seed=N" as the random part of FaultOptions.
[[nodiscard]] FaultOptions parse_random_faults(const std::string& text);

/// "core=K,factor=F"; several with '+' between them.
[[nodiscard]] std::vector<Straggler> parse_stragglers(const std::string& text);

}  // namespace rubato
