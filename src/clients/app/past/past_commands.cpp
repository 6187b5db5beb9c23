#include "past_commands.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "base/core/throw_error.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "runs/config/run_option.hpp"

namespace rubato::app {

const PastCommandRow* past_command(std::string_view name) {
  static constexpr std::array<PastCommandRow, 4> kCommands{{{"diff", parse_diff},
                                                            {"doom", parse_doom},
                                                            {"replay", parse_replay},
                                                            {"whatif", parse_whatif}}};
  const auto* const found = std::ranges::find(kCommands, name, &PastCommandRow::name);
  return found == kCommands.end() ? nullptr : found;
}

void set_given(RunConfiguration& run, const RunConfiguration& typed, const GivenOptions& given) {
  for (const RunOption& option : run_options()) {
    if (!given.contains(option.name)) continue;
    option.reset(run);
    if (const auto text = option.text(typed)) option.set(run, *text);
  }
}

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", grouped(count), one, count == 1 ? "" : "s");
}

std::pair<std::int64_t, std::int64_t> parse_steps(const std::string& text) {
  constexpr std::string_view kTo = "..";
  constexpr std::int64_t kLastStep = 1'000'000'000;
  const std::size_t to = text.find(kTo);
  if (to == std::string::npos) {
    throw_error("'{}' names no steps; accepted: A..B, such as 100..120", text);
  }
  const std::int64_t first = parse_whole(text.substr(0, to), 1, kLastStep);
  return {first, parse_whole(text.substr(to + kTo.size()), first, kLastStep)};
}

Report warnings_of(std::string_view command) {
  return [command = std::string(command)](const std::string& text) {
    print_error(fmt::format("{}: {}\n", command, text));
  };
}

WorkLine::WorkLine(bool quiet) : shown_(!quiet && can_redraw(STDERR_FILENO)), line_(redraw_error) {}

void WorkLine::show(std::vector<LineField> fields) {
  constexpr double kBetween = 0.2;
  if (!shown_ || (line_.drawn() && since_.seconds() < kBetween)) return;
  line_.draw(fitting_line(std::move(fields), drawable_columns(STDERR_FILENO)));
  since_ = Stopwatch();
}

ReplayLine::ReplayLine(std::string_view command, bool quiet)
    : command_(command), quiet_(quiet), line_(quiet) {}

ReplayParts ReplayLine::parts(const LoadWorkload& load) {
  return {
      .load = load,
      .report = warnings_of(command_),
      .on_begin =
          [this](const auto& run, std::int64_t first, std::int64_t last) {
            last_ = last;
            if (quiet_) return;
            print_text(fmt::format("repeating steps {} to {} of {}\n", first, last, run.string()));
          },
      .on_step =
          [this](std::int64_t steps) {
            line_.show({{fmt::format("step {} of {}", steps, last_), 1}});
          }};
}

}  // namespace rubato::app
