// The files of the runs are read every kBetweenLooks; there is no connection with the processes
// that train. follow() redraws one block, no higher than the terminal, and prints all lines once
// the runs have ended. Signals only set a flag, which is looked at between two draws; when
// something else has written to the terminal (StopSignals::disturbances()), the block is begun anew
// below that. On a stdout that cannot be redrawn, the current state is printed once.

#include "watch_command.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/terminal/charts.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"

namespace rubato::app {

namespace {

using Watched = WatchedRuns::Watched;
using Phase = RunView::Phase;

// The order of the runs: active ones first.
int rank_of(const Watched& watched) {
  if (!watched.failure.empty()) return 2;
  switch (watched.run.view().phase) {
    case Phase::training:
      return 0;
    case Phase::silent:
      return 1;
    case Phase::ended:
      break;
  }
  return 3;
}

std::string short_name(std::string_view text, std::size_t columns) {
  const std::string_view shown = text.substr(0, text.find('\n'));
  if (width_of(shown) <= columns || columns < 4) return std::string(shown);
  // Names may differ at either end, so both are kept.
  const std::size_t kept = columns - 3;
  return fmt::format("{}...{}", first_columns(shown, kept / 2),
                     last_columns(shown, kept - kept / 2));
}

std::string line_of(const Watched& watched, std::size_t name_columns, const ViewStyle& style) {
  const std::string name = short_name(watched.name, name_columns);
  const int columns = static_cast<int>(name_columns);
  if (watched.failure.empty()) return view_line(name, columns, watched.run.view(), style);
  const int room = std::max(style.columns - columns - 2, 0);
  const std::string why =
      fmt::format("failed: {}",
                  first_columns(watched.failure, static_cast<std::size_t>(std::max(room - 8, 0))));
  return fmt::format("{}  {}", padded_to(name, name_columns),
                     painted(why, Ink::red, style.colours));
}

std::string summary_line(const WatchedRuns& runs, const ViewStyle& style) {
  constexpr int kBar = 30;
  std::size_t ended = 0;
  double done = 0;
  for (const Watched& watched : runs.runs()) {
    const bool over = watched.run.has_ended() || !watched.failure.empty();
    ended += over ? 1 : 0;
    done += over ? 1 : watched.run.view().done.value_or(0);
  }
  const std::size_t all = runs.expected();
  std::string text = fmt::format("{} of {} runs have ended", ended, all);
  const int room = style.columns - static_cast<int>(text.size()) - 2;
  if (all == 0 || room < 4) return text;
  const ThinBar bar = thin_bar(done / static_cast<double>(all), std::min(room, kBar), style.utf8);
  return fmt::format("{}  {}{}", text, painted(bar.done, Ink::cyan, style.colours),
                     painted(bar.left, Ink::dim, style.colours));
}

}  // namespace

std::vector<std::string> watch_lines(const WatchedRuns& runs, const ViewStyle& style,
                                     std::size_t rows) {
  if (runs.is_single()) return view_lines(runs.runs().front().run.view(), style);
  std::vector<const Watched*> sorted;
  std::size_t name_columns = 4;
  for (const Watched& watched : runs.runs()) {
    sorted.push_back(&watched);
    name_columns = std::max(name_columns, width_of(watched.name));
  }
  name_columns = std::min(name_columns, static_cast<std::size_t>(std::max(style.columns, 12)) / 3);
  std::ranges::stable_sort(sorted, {}, [](const Watched* watched) { return rank_of(*watched); });
  std::vector<std::string> lines{summary_line(runs, style)};
  const std::size_t all = sorted.size();
  const std::size_t shown = all + 1 <= rows ? all : rows < 3 ? 0 : rows - 2;
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(line_of(*sorted[i], name_columns, style));
  }
  if (shown < all && rows >= 2) lines.push_back(fmt::format("and {} more", all - shown));
  return lines;
}

namespace {

using std::filesystem::path;

constexpr std::chrono::milliseconds kBetweenLooks{200};

std::vector<path> folders_of(std::span<const std::string> arguments) {
  std::vector<path> folders;
  CommandLine line(
      "rubato watch",
      "Shows the progress of runs from their files: one run as `rubato train` shows it, "
      "several with a line each. It takes no part in them, follows a run that is killed "
      "and resumed, and ends when all have ended. Without a terminal, or with "
      "TERM=dumb, it prints their current state, and ends.");
  line.operands(OperandCount::some, "RUN|EXPERIMENT", "the folder of a run, or one with runs in it",
                [&](const std::string& text) { folders.emplace_back(text); });
  line.footer(
      "Examples:\n"
      "  rubato watch runs/2024-05-31T12-00-00Z\n"
      "  rubato watch runs\n"
      "Exit codes: 0 when all runs have ended, however they did, 2 for a folder without\n"
      "runs, 130 or 143 after a signal.");
  line.parse(arguments);
  return folders;
}

// Draws the runs until they have ended or a signal arrives. Returns the signal, or 0.
int follow(WatchedRuns& runs) {
  const StopSignals signals(nullptr);
  DrawnBlock block(print_out);
  int disturbances = signals.disturbances();
  while (true) {
    runs.update();
    if (std::exchange(disturbances, signals.disturbances()) != disturbances) block.leave();
    const int columns = drawable_columns(STDOUT_FILENO);
    const ViewStyle style{.columns = columns, .utf8 = speaks_utf8(), .colours = wants_colours()};
    const std::size_t rows = std::max<std::size_t>(terminal_rows(STDOUT_FILENO).value_or(24), 2);
    const bool ended = runs.has_ended();
    // The cursor needs a row of its own. Once all runs have ended, every line is shown: nothing is
    // drawn over them, and the terminal scrolls.
    std::vector<std::string> lines =
        ended ? watch_lines(runs, style) : watch_lines(runs, style, rows - 1);
    if (!ended && lines.size() >= rows) lines.resize(rows - 1);
    block.draw(std::move(lines), columns + 1, rows);
    require_output();
    if (ended) return 0;
    std::this_thread::sleep_for(kBetweenLooks);
    if (const int signal = signals.received(); signal != 0) {
      // The terminal has printed ^C, which gets a line of its own.
      if (signal == SIGINT) print_out("\n");
      return signal;
    }
  }
}

void print_once(WatchedRuns& runs) {
  constexpr int kOne = 80;
  constexpr int kSeveral = 120;
  runs.update();
  const ViewStyle style{
      .columns = runs.is_single() ? kOne : kSeveral, .utf8 = speaks_utf8(), .colours = false};
  for (const std::string& line : watch_lines(runs, style)) print_out(line + '\n');
}

}  // namespace

int watch_command(std::span<const std::string> arguments) {
  WatchedRuns runs(folders_of(arguments));
  if (!can_redraw(STDOUT_FILENO)) {
    print_once(runs);
    return 0;
  }
  const int signal = follow(runs);
  return signal == 0 ? 0 : static_cast<int>(exit_code_of_signal(signal));
}

}  // namespace rubato::app
