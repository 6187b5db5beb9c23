#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/text/output_fields.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "runs/run/doom.hpp"
#include "runs/run/fork.hpp"

namespace rubato::app {

/// A command that repeats steps of runs, or trains forks of them: its arguments, checked.
class PastCommand {
 public:
  PastCommand() = default;
  PastCommand(const PastCommand&) = delete;
  PastCommand& operator=(const PastCommand&) = delete;
  virtual ~PastCommand() = default;

  /// The options with which steps are computed: they say which engine and which kernels.
  [[nodiscard]] virtual const RunConfiguration& run() const = 0;
  /// Does what the command is for, and prints what came of it. Throws Error, and OutputError.
  [[nodiscard]] virtual ExitCode execute(const LoadWorkload& load) = 0;
};

struct PastCommandRow {
  std::string_view name{};
  /// Reads the arguments after the name of the command. Throws HelpAsked, and Error for a mistake
  /// of the user.
  std::unique_ptr<PastCommand> (*parse)(std::span<const std::string> arguments) = nullptr;
};

/// The command of that name; null if it is none of these.
[[nodiscard]] const PastCommandRow* past_command(std::string_view name);

// The rows of the table, each in a file of its own.

/// `rubato doom`: finds the step of a run from which on it was lost.
[[nodiscard]] std::unique_ptr<PastCommand> parse_doom(std::span<const std::string> arguments);
/// The JSON that it prints with --json.
[[nodiscard]] JsonForm<DoomResult> doom_form();
/// `rubato replay`: repeats steps of a run, and writes down what was not written then.
[[nodiscard]] std::unique_ptr<PastCommand> parse_replay(std::span<const std::string> arguments);
/// `rubato whatif`: trains a run without the changes of its devices.
[[nodiscard]] std::unique_ptr<PastCommand> parse_whatif(std::span<const std::string> arguments);

/// `rubato diff`: finds where two runs part.
[[nodiscard]] std::unique_ptr<PastCommand> parse_diff(std::span<const std::string> arguments);

// Parts of several of them.

/// Sets those options of `typed` that were given.
void set_given(RunConfiguration& run, const RunConfiguration& typed, const GivenOptions& given);

/// Returns "1 step" or "1,200 steps".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view one);

/// Parses "A..B", two steps counted from 1. Throws Error.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> parse_steps(const std::string& text);

/// Prints what a user should know, in the name of a command such as "rubato diff".
[[nodiscard]] Report warnings_of(std::string_view command);

/// A line of stderr that says at a terminal what a command is doing, redrawn at most five times a
/// second. It is gone once the object is.
class WorkLine {
 public:
  explicit WorkLine(bool quiet);
  ~WorkLine() { line_.clear(); }
  WorkLine(const WorkLine&) = delete;
  WorkLine& operator=(const WorkLine&) = delete;

  void show(std::vector<LineField> fields);

 private:
  bool shown_;
  DrawnLine line_;
  Stopwatch since_;
};

/// Says which steps of a run are repeated and, at a terminal, which one is being repeated.
class ReplayLine {
 public:
  /// `command` is the one that warns: "rubato diff".
  ReplayLine(std::string_view command, bool quiet);

  /// Repeats steps with this line as progress. It must outlive the result.
  [[nodiscard]] ReplayParts parts(const LoadWorkload& load);

 private:
  std::string command_;
  bool quiet_;
  std::int64_t last_ = 0;
  WorkLine line_;
};

}  // namespace rubato::app
