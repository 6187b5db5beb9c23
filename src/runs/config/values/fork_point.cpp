#include "fork_point.hpp"

#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "runs/config/engine.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMaxStep = 1'000'000'000;

ForkPoint parse_fork_point(const std::string& text) {
  if (text.empty()) return {};
  // A folder may have the character in its name.
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0) {
    throw_error("'{}' names no step of a run; accepted: RUN@STEP, such as runs/first@120", text);
  }
  return {.run = text.substr(0, at),
          .step = parse_whole(std::string_view(text).substr(at + 1), 0, kMaxStep)};
}

}  // namespace

template <>
std::shared_ptr<const ForkPoint> Parsed<ForkPoint>::parse(const std::string& text,
                                                          const Extensions& /*own*/) {
  return std::make_shared<const ForkPoint>(parse_fork_point(text));
}

std::string map_fork_point(const std::string& text, const PathMap& map) {
  if (text.empty()) return text;
  const ForkPoint point = parse_fork_point(text);
  return fmt::format("{}@{}", map(point.run).string(), point.step);
}

void require_forkable(const RunConfiguration& before, const RunConfiguration& now) {
  std::vector<std::string> refused;
  for (const RunOption& option : run_options()) {
    if (option.fixed_in_fork.empty()) continue;
    const auto was = option.text(before);
    const auto is = option.text(now);
    // A file is compared by its content when the state is loaded.
    if (was == is || (was && is && names_file(option, *was) && names_file(option, *is))) continue;
    refused.push_back(
        fmt::format("{}: {}", change_in_words(option, before, now), option.fixed_in_fork));
  }
  if (refused.empty() && engine_of(before) != engine_of(now)) {
    refused.push_back(fmt::format("its options need the engine {}, and those of the run {}",
                                  choice_name(kEngines, engine_of(now)),
                                  choice_name(kEngines, engine_of(before))));
  }
  if (refused.empty()) return;
  throw_error(
      "--from: a fork cannot go on with other options of these: {}; accepted: those of the run",
      fmt::join(refused, "; "));
}

std::vector<std::string> changed_in_fork(const RunConfiguration& before,
                                         const RunConfiguration& now) {
  std::vector<std::string> changed;
  for (const RunOption& option : run_options()) {
    if (option.affects != Affects::bits || option.name == "from") continue;
    if (option.text(before) != option.text(now)) changed.push_back(option.name);
  }
  return changed;
}

}  // namespace rubato
