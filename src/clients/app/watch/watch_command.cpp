#include "watch_command.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/terminal/drawn_block.hpp"
#include "base/core/terminal/drawn_line.hpp"
#include "base/core/terminal/terminal.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/stop_signals.hpp"
#include "watch_lines.hpp"

namespace rubato::app {

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
