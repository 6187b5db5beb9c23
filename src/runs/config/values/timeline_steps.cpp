#include "timeline_steps.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

namespace rubato {

TimelineSteps parse_timeline(const std::string& text) {
  constexpr std::string_view kSteps = "steps=";
  constexpr std::string_view kTo = "..";
  constexpr std::int64_t kLastStep = 1'000'000'000;
  if (text.empty() || text == "all") return {};
  const std::size_t to = text.find(kTo);
  if (!text.starts_with(kSteps) || to == std::string::npos) {
    throw Error(fmt::format("'{}' names no steps; accepted: all, or such as steps=100..120", text));
  }
  const std::int64_t first =
      parse_whole(std::string_view(text).substr(kSteps.size(), to - kSteps.size()), 1, kLastStep);
  const std::int64_t last =
      parse_whole(std::string_view(text).substr(to + kTo.size()), first, kLastStep);
  return {.first = StepIndex{first - 1}, .last = StepIndex{last - 1}};
}

}  // namespace rubato
