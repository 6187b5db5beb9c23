#include "host_progress.hpp"

#include <chrono>
#include <limits>
#include <sstream>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

namespace rubato::c10d_hosts_detail {

namespace {

constexpr std::string_view kNoSteps = "none";

}  // namespace

std::int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::seconds>(now).count();
}

std::string text_of(const HostProgress& progress) {
  return fmt::format("{} {} {}",
                     progress.steps ? fmt::to_string(*progress.steps) : std::string(kNoSteps),
                     progress.came, progress.told);
}

std::optional<HostProgress> parse_progress(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::istringstream words{std::string(text)};
  std::string steps;
  std::string came;
  std::string told;
  words >> steps >> came >> told;
  try {
    HostProgress progress{.came = parse_whole(came, 0, kMost), .told = parse_whole(told, 0, kMost)};
    if (steps != kNoSteps) progress.steps = parse_whole(steps, 0, kMost);
    return progress;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace rubato::c10d_hosts_detail
