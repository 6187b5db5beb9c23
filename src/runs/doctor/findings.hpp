#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rubato/base/parse.hpp>

#include "base/core/text/text.hpp"
#include "facts.hpp"

namespace rubato::doctor {

enum class Health {
  good,
  /// Training is correct, but could be somewhat faster or is near a limit.
  note,
  /// Training is several times slower than it could be, or will fail.
  problem,
};

inline constexpr std::array<Choice<Health>, 3> kHealths{
    {{Health::good, "good"}, {Health::note, "note"}, {Health::problem, "problem"}}};

/// The result of one check.
struct Finding {
  std::string subject{};
  Health health = Health::good;
  /// The state that was found: a sentence without a full stop.
  std::string what{};
  /// The remedy; empty if all is well, or nothing can be done.
  std::string advice{};
};

/// All findings, in the order in which they are shown; each is a function of the facts alone.
[[nodiscard]] std::vector<Finding> findings(const Facts& facts);

/// A block of lines for each finding, within eighty columns unless a word is longer, and a last
/// line that counts them.
[[nodiscard]] std::string report_text(std::span<const Finding> findings, LineWidth width = {});

/// The same as JSON, together with the facts.
[[nodiscard]] std::string report_json(const Facts& facts, std::span<const Finding> findings);
/// The JSON Schema of report_json().
[[nodiscard]] nlohmann::ordered_json report_schema();

/// Whether no finding is a problem.
[[nodiscard]] bool is_well(std::span<const Finding> findings);

}  // namespace rubato::doctor
