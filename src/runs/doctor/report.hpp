#pragma once

#include <span>
#include <string>

#include "base/core/text/wrapped.hpp"
#include "facts.hpp"
#include "findings.hpp"

namespace rubato::doctor {

/// A block of lines for each finding, within eighty columns where no word is longer, and a last
/// line that counts them.
[[nodiscard]] std::string report_text(std::span<const Finding> findings, LineWidth width = {});

/// The same, with the facts behind it, for programs.
[[nodiscard]] std::string report_json(const Facts& facts, std::span<const Finding> findings);

/// Whether there is no problem.
[[nodiscard]] bool is_well(std::span<const Finding> findings);

}  // namespace rubato::doctor
