#pragma once

#include <span>
#include <string>

#include "base/core/text/wrapped.hpp"
#include "facts.hpp"
#include "findings.hpp"

namespace rubato::doctor {

/// A block of lines for each finding, within eighty columns unless a word is longer, and a last
/// line that counts them.
[[nodiscard]] std::string report_text(std::span<const Finding> findings, LineWidth width = {});

/// The same as JSON, together with the facts.
[[nodiscard]] std::string report_json(const Facts& facts, std::span<const Finding> findings);

/// Whether no finding is a problem.
[[nodiscard]] bool is_well(std::span<const Finding> findings);

}  // namespace rubato::doctor
