// Each combination of --threads, --size and --cores is one task. Within a task,
// lab::measure_in_turn() lets the strategies and peers take turns, so that a machine whose speed
// drifts favours none of them. Every number of threads has its own Workers and its own STREAM
// triad, the bandwidth with which a strategy's bytes per second are compared. The names of all
// strategies and the memory of all tasks are checked before the first measurement, because a run
// may take hours; a peer that would not fit into memory is left out instead.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/limits.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "bench_output.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "commands.hpp"
#include "runs/lab/contestants.hpp"
#include "runs/lab/measure.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMostCores = 4096;
constexpr std::int64_t kMostThreads = 4096;
constexpr std::int64_t kMostValues = std::int64_t{1} << 31;
constexpr RealRange kSeconds{0, 3600, false, true, "a number above 0 and up to 3600"};

// The number of parameters of the MNIST network.
constexpr std::int64_t kMnistValues = 22'000;

struct BenchOptions {
  /// All strategies if empty.
  std::vector<std::string> strategies;
  std::vector<std::int64_t> cores{8};
  std::vector<std::int64_t> sizes{kMnistValues};
  std::vector<std::int64_t> threads{hardware_threads()};
  bool fused = false;
  lab::MeasureOptions measure;
  bool peers = true;
  bool json = false;
};

// A part that consists of NAME=VALUE alone is another argument of the strategy before it.
std::vector<std::string> split_strategies(const std::string& text) {
  return split_list(text, [](std::string_view strategy, std::string_view part) {
    return strategy.find(':') != std::string_view::npos && is_argument(part) &&
           part.find(':') == std::string_view::npos;
  });
}

std::vector<std::int64_t> parse_list(const std::string& text, std::int64_t max) {
  return vector_of(split_at(text, ','),
                   [max](std::string_view part) { return parse_whole(part, 1, max); });
}

void define_tasks(CommandLine& line, BenchOptions& options) {
  line.group("What to measure");
  line.option("strategy", "NAME,...",
              fmt::format("the strategies: {}, and with --fused also loop, a loop written by hand; "
                          "two-level takes hosts=N,inner=NAME,outer=NAME [all]",
                          fmt::join(lab::strategy_names(false), ", ")),
              "", [&](const std::string& text) { options.strategies = split_strategies(text); });
  line.option("cores", "N,...", "cores, each with a buffer", "8",
              [&](const std::string& text) { options.cores = parse_list(text, kMostCores); });
  line.option("size", "P,...", "floats in a buffer; the default is the MNIST network's",
              fmt::to_string(kMnistValues),
              [&](const std::string& text) { options.sizes = parse_list(text, kMostValues); });
  line.option("threads", "N,...", "hardware threads to use",
              fmt::format("all, here {}", options.threads.front()),
              [&](const std::string& text) { options.threads = parse_list(text, kMostThreads); });
  line.flag("fused",
            "sum and update: an SGD step with momentum follows, in the same pass if the strategy "
            "supports it",
            options.fused);
}

void define_conditions(CommandLine& line, BenchOptions& options) {
  line.group("Under what conditions");
  line.choice("arrival", "when the cores' buffers arrive; the time counts from the last one",
              "simultaneous", "arrival", lab::kArrivals, options.measure.arrival);
  line.choice("cache", "whether buffers may be in the caches at the start", "hot", "cache",
              lab::kCaches, options.measure.cache);
  line.real("seconds", "X",
            "approximate time for each measurement, in three rounds in which the strategies take "
            "turns",
            fmt::to_string(options.measure.seconds), options.measure.seconds, kSeconds);
}

// Shows on a terminal what is being measured, as the table comes only at the end.
void say_progress(DrawnLine& line, std::vector<LineField> fields) {
  if (!can_redraw(STDERR_FILENO)) return;
  line.draw(fitting_line(std::move(fields), drawable_columns(STDERR_FILENO)));
}

std::vector<std::string_view> strategies_of(const BenchOptions& options, std::int64_t cores) {
  const auto all = lab::strategy_names(options.fused);
  if (options.strategies.empty() || options.strategies == std::vector<std::string>{"all"}) {
    std::vector<std::string_view> fitting;
    for (const std::string_view name : all) {
      if (name != "loop" || cores <= 8) fitting.push_back(name);
    }
    return fitting;
  }
  return {options.strategies.begin(), options.strategies.end()};
}

// Returns whether the buffers of a peer fit into memory, and as much again for what its ranks
// receive. Prints why if they do not.
bool has_memory(const lab::Peer& peer, const lab::ReduceTask& task) {
  constexpr double kCopies = 2;
  try {
    require_memory(
        kCopies * static_cast<double>(task.cores) * static_cast<double>(task.size) * sizeof(float),
        fmt::format("{} on {} ranks x {} floats needs", peer.name, task.cores, task.size),
        "it is left out");
    return true;
  } catch (const MemoryError& error) {
    print_error(fmt::format("rubato bench: {}\n", error.what()));
    return false;
  }
}

// The entrants of one measurement, and a row for each, in which only the results are missing.
struct Field {
  std::vector<lab::Entrant> entrants;
  std::vector<BenchRow> rows;
};

void enter_strategies(const BenchOptions& options, const lab::ReduceTask& task, Workers& workers,
                      Field& field) {
  for (const std::string_view name : strategies_of(options, task.cores)) {
    field.entrants.push_back(lab::entrant(name, task, workers));
    field.rows.push_back({.strategy = std::string(name),
                          .reproducible = is_reproducible(name),
                          .task = task,
                          .bytes_moved = lab::bytes_moved_by(name, task)});
  }
}

void enter_peers(const lab::ReduceTask& task, Field& field) {
  for (const lab::Peer& peer : lab::installed_peers()) {
    if (!has_memory(peer, task)) continue;
    field.entrants.push_back(lab::entrant(peer, task));
    field.rows.push_back({.strategy = task.fused ? peer.name + ", no update" : peer.name,
                          .task = {.cores = task.cores, .size = task.size}});
  }
}

std::vector<BenchRow> measure_task(const BenchOptions& options, const lab::ReduceTask& task,
                                   Workers& workers, double triad, DrawnLine& progress) {
  Field field;
  enter_strategies(options, task, workers, field);
  if (options.peers) enter_peers(task, field);
  const auto measurements =
      lab::measure_in_turn(field.entrants, options.measure, [&](std::string_view name, int round) {
        say_progress(progress, {{fmt::format("round {} of {}", round, lab::kRounds), 3},
                                {std::string(name), 4},
                                {fmt::format("{} cores x {} floats", task.cores, task.size), 2},
                                {fmt::format("{} threads", workers.threads()), 1}});
      });
  progress.clear();
  std::vector<BenchRow> rows;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    // A peer that failed is left out.
    if (!measurements[i]) continue;
    BenchRow& row = rows.emplace_back(std::move(field.rows[i]));
    row.threads = workers.threads();
    row.options = options.measure;
    row.seconds = *measurements[i];
    row.triad = triad;
  }
  return rows;
}

lab::ReduceTask task_of(const BenchOptions& options, std::int64_t cores, std::int64_t size) {
  return {.cores = cores, .size = static_cast<std::size_t>(size), .fused = options.fused};
}

// The strategies' names are checked before the first measurement, not after the first hour.
void check_strategies(const BenchOptions& options) {
  if (options.strategies == std::vector<std::string>{"all"}) return;
  for (const std::string& name : options.strategies) {
    for (const std::int64_t cores : options.cores) {
      try {
        lab::require_strategy(name, task_of(options, cores, 1));
      } catch (const Error& error) {
        throw_error("--strategy: {}", error.what());
      }
    }
  }
}

// Throws MemoryError before the first measurement if one of them would not fit into memory.
// Strategies are measured one at a time, so only one has its arrays.
void check_memory(const BenchOptions& options) {
  const MemoryLimit limit = memory_limit();
  const auto flushed = static_cast<double>(lab::Flusher::bytes_of(options.measure.cache));
  for (const std::int64_t cores : options.cores) {
    for (const std::int64_t size : options.sizes) {
      const lab::ReduceTask task = task_of(options, cores, size);
      for (const std::string_view name : strategies_of(options, cores)) {
        require_memory(lab::memory_of(name, task) + flushed,
                       fmt::format("{} on {} cores x {} floats needs", name, cores, size),
                       "fewer --cores or a smaller --size need less", limit);
      }
    }
  }
}

int bench_reduce(std::span<const std::string> arguments) {
  BenchOptions options;
  CommandLine line("rubato bench reduce",
                   "Measures strategies for summing the buffers of all cores, after checking that "
                   "each computes the right sum.");
  define_tasks(line, options);
  define_conditions(line, options);
  line.flag("peers",
            "also measure MPI_Allreduce (ranks as processes) and gloo (ranks as threads), if they "
            "are built; --peers=false does not [true]",
            options.peers);
  line.group("Output");
  line.flag("json", "print JSON", options.json);
  line.footer(
      "Values in [] are the defaults; all combinations of several values are measured.\n"
      "Examples:\n"
      "  rubato bench reduce\n"
      "  rubato bench reduce --cores 2,8 --size 25557032 --fused\n"
      "  rubato bench reduce --strategy tree,chunked-tree --arrival straggler --json");
  line.parse(arguments);
  check_strategies(options);
  check_memory(options);

  if (!options.json) print_text(bench_header(output_width()));
  DrawnLine progress(redraw_error);
  std::vector<BenchRow> all;
  for (const std::int64_t threads : options.threads) {
    Workers workers(static_cast<int>(threads));
    say_progress(progress, {{"STREAM triad", 1}});
    const double triad = lab::triad_bandwidth(workers);
    for (const std::int64_t size : options.sizes) {
      for (const std::int64_t cores : options.cores) {
        const lab::ReduceTask task = task_of(options, cores, size);
        const std::vector<BenchRow> rows = measure_task(options, task, workers, triad, progress);
        if (!options.json) {
          print_text(bench_table(rows, output_width()));
          // A closed pipe ends the program here: nobody would read the remaining measurements.
          require_output();
        }
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
  if (options.json) print_out(bench_json(all));
  return 0;
}

constexpr std::array kBenchCommands{
    Command{"reduce", "strategies for summing the cores' gradients", bench_reduce}};

}  // namespace

constinit const CommandGroup kBench{.name = "rubato bench",
                                    .description = "Measures the parts of training.",
                                    .kind = "benchmark",
                                    .commands = kBenchCommands,
                                    .footer = "`rubato bench reduce --help` says more."};

}  // namespace rubato::app
