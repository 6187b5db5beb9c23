#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato::app {

/// The arguments of `rubato compare`.
struct CompareArguments {
  Design design;
  /// The folder of the experiment.
  std::filesystem::path folder;
  /// The largest number of runs at the same time.
  std::int64_t jobs = 1;
  /// PoolOptions::cpus.
  std::int64_t cpus = 0;
  bool quiet = false;
  /// Writes the folder and the list of its runs, and trains nothing.
  bool only_plan = false;
  /// The number of a run in that list, or its name; empty for all runs.
  std::string run{};
  /// Work::check.
  double check = 0;
  /// Work::reuse.
  std::filesystem::path reuse{};
};

/// Reads the arguments after `rubato compare`, with the design that --config names or that of the
/// experiment that --resume names. Throws HelpAsked, and Error for a mistake of the user; traces
/// and data are not read.
[[nodiscard]] CompareArguments parse_compare_arguments(std::span<const std::string> arguments);

/// Shows the progress of an experiment on stdout: on a terminal a line that is redrawn, elsewhere a
/// line for each run that has ended. A run that failed has a line of its own on both.
class CompareProgress final : public ExperimentView {
 public:
  /// `terminal` is true if stdout can be redrawn.
  explicit CompareProgress(bool terminal);

  void on_search(const SearchCost& cost) override;
  void on_stage(const std::string& name, std::int64_t runs,
                const std::vector<RunResult>& ended) override;
  void on_shares(const CpuShares& shares) override;
  void on_start(const std::string& run) override;
  void on_end(const std::string& run, const RunResult& result, double seconds) override;
  void on_damaged(const std::string& run, const std::string& what,
                  const std::filesystem::path& aside) override;
  void on_missing(const std::string& run, const std::string& why) override;
  void on_same(const std::string& run, const std::string& machine) override;
  void on_reused(const std::string& run) override;
  void on_server_failed(const std::string& why) override;
  void on_tick() override;
  void on_stage_end() override;

 private:
  [[nodiscard]] std::string line() const;
  /// The time left, estimated from the mean time of the runs that have ended; empty until one has.
  [[nodiscard]] std::string time_left() const;
  void print_line(const std::string& text);
  void draw();

  /// The number of runs at the same time, and the line that said so last.
  std::int64_t jobs_ = 1;
  std::string shares_;
  bool terminal_;
  DrawnLine line_;
  std::string stage_;
  std::int64_t runs_ = 0;
  /// The fewest runs of the stage, of which a search does not know all at once.
  std::int64_t least_runs_ = 0;
  std::int64_t ended_ = 0;
  std::int64_t lost_ = 0;
  std::int64_t missing_ = 0;
  std::int64_t reused_ = 0;
  double seconds_ = 0;
  std::int64_t timed_ = 0;
  std::map<std::string, Stopwatch> running_;
};

/// A view that reports damaged runs on stderr, and nothing else.
class NoProgress final : public ExperimentView {
 public:
  void on_damaged(const std::string& run, const std::string& what,
                  const std::filesystem::path& aside) override;
};

}  // namespace rubato::app
