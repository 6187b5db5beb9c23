#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/family.hpp>
#include <rubato/trace/availability.hpp>

namespace rubato {

/// Makes an availability from a description: "constant:devices=8,hours=2", "spot:most=64,seed=3".
/// The same text makes the same availability, which it is also the source() of. Throws Error for an
/// unknown generator or argument, and for more than ten million changes.
[[nodiscard]] Availability generate_availability(const std::string& text,
                                                 TraceEnd end = TraceEnd::error);

/// Throws what generate_availability() throws for what is wrong with the text, and makes nothing.
void require_generator(const std::string& text);

/// The generators with their arguments: constant, steps, saw, walk, spot and daily.
[[nodiscard]] std::vector<Strategy> availability_generators();
/// Whether `text` is the name of a generator, with arguments or without.
[[nodiscard]] bool is_generator(std::string_view text);

}  // namespace rubato
