// what_if() trains the forks and keeps their results in RUN/whatif; this file reads the arguments,
// shows the progress, and prints the answer. Options of a run that change its bits become a
// function that sets only these in another configuration; the run's configuration with them is
// checked before anything is trained. The time that is left is estimated from the share of the plan
// that is done and the time since it was begun. --list needs only the records of the run.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/seconds.hpp"
#include "base/core/text/json.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "past_commands.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/whatif/whatif.hpp"
#include "whatif_table.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMostSeeds = 100;
constexpr std::int64_t kMostEvents = 1'000'000;
constexpr double kOfPercent = 100;
constexpr RealRange kShares{.min = 0, .max = kOfPercent, .words = "a percentage from 0 to 100"};
constexpr RealRange kLosses{.min = 0, .max = kLargestReal, .words = "a number of at least 0"};

constexpr CommandTexts kWhatIfTexts{
    "rubato whatif",
    "Says what elasticity has cost a run: each event of its trace (devices taken or given back, "
    "another batch, a core that died) is left out alone, and all together. What a run would have "
    "been is trained, as a fork at the step before the event, and nothing else is different: a "
    "difference is an effect, and not chance. Options of a run make one more, with these options "
    "from the first event on.",
    "Values in [] are the defaults. The trained forks are kept in RUN/whatif: a command that was\n"
    "interrupted continues. Examples:\n"
    "  rubato whatif runs/first --list\n"
    "  rubato whatif runs/first\n"
    "  rubato whatif runs/first --without preemptions --seeds 4\n"
    "  rubato whatif runs/first --without 3 --rule root\n"
    "Exit codes: 2 for a mistake in the options or files, 24 if output could not be\n"
    "written."};

// Shows at a terminal how far a plan is.
class WhatIfLine {
 public:
  explicit WhatIfLine(bool quiet) : line_(quiet) {}

  void begin(const WhatIfPlan& plan) {
    forks_ = plan.forks;
    begun_ = Stopwatch();
  }
  void show(const WhatIfProgress& progress) {
    constexpr double kLeastShare = 0.02;
    std::string text = progress.fork == 0 ? fmt::format("repeating the run: step {}", progress.step)
                                          : fmt::format("fork {} of {}, {}: step {}", progress.fork,
                                                        forks_, progress.name, progress.step);
    if (progress.share > kLeastShare) {
      const double left = begun_.seconds() * (1 / progress.share - 1);
      text += fmt::format(", {:.0f} s left", left);
    }
    line_.show({{std::move(text), 1}});
  }

 private:
  WorkLine line_;
  std::int64_t forks_ = 0;
  Stopwatch begun_;
};

enum class WhatIfOutput { table, json, list, nothing };

class WhatIfCommand final : public PastCommand {
 public:
  WhatIfCommand(WhatIfRequest request, WhatIfOutput output)
      : request_(std::move(request)), output_(output) {}

  [[nodiscard]] const RunConfiguration& run() const override { return request_.configuration; }
  [[nodiscard]] ExitCode execute(const LoadWorkload& load) override {
    if (output_ == WhatIfOutput::list) {
      const auto events = events_of_run(request_);
      print_out(events.empty() ? fmt::format("{}: no events\n", request_.run.string())
                               : table_of_events(events, output_width()));
      return ExitCode::good;
    }
    const WhatIfResult result = train(load);
    if (output_ == WhatIfOutput::json) print_out(json_text(whatif_form().write(result), 1) + "\n");
    if (output_ == WhatIfOutput::table) {
      print_text("\n");
      print_out(table_of_answer(result, output_width()));
    }
    return ExitCode::good;
  }

 private:
  [[nodiscard]] WhatIfResult train(const LoadWorkload& load) const {
    WhatIfLine line(output_ == WhatIfOutput::nothing);
    return what_if(request_, {.load = load,
                              .report = warnings_of(kWhatIfTexts.name),
                              .on_plan =
                                  [&](const WhatIfPlan& plan) {
                                    if (output_ == WhatIfOutput::table)
                                      print_text(words_of_plan(plan));
                                    line.begin(plan);
                                  },
                              .on_step = [&](const WhatIfProgress& at) { line.show(at); }});
  }

  WhatIfRequest request_;
  WhatIfOutput output_;
};

}  // namespace

std::unique_ptr<PastCommand> parse_whatif(std::span<const std::string> arguments) {
  CommandLine line(kWhatIfTexts);
  WhatIfRequest request;
  RunConfiguration typed;
  bool lists = false;
  bool as_json = false;
  bool quiet = false;
  line.operands(OperandCount::one, "RUN", "the folder of the run",
                [&](const std::string& text) { request.run = text; });
  line.group("What to leave out");
  line.flag("list", "print the events of the run, and train nothing", lists);
  line.text("without", "EVENTS|preemptions|all-changes",
            "leave out these events alone, such as 3,7, or @41 for those of step 41, and together; "
            "or all losses of devices together, or everything",
            "each event, and everything", request.without);
  line.whole("most", "N", "leave out at most N events alone, those with the largest changes",
             "as many as about 10 minutes allow", request.most, 0, kMostEvents);
  line.whole("seeds", "N",
             "train everything again with N other orders of the samples, to say how the effects "
             "vary",
             "0", request.seeds, 0, kMostSeeds);
  line.option("target-accuracy", "P", "count the samples until the test accuracy is P percent",
              "the run's last", [&](const std::string& text) {
                request.target.accuracy = parse_real(text, kShares) / kOfPercent;
              });
  line.option("target-loss", "X", "count the samples until the test loss is X",
              "with outputs that are no classes: the run's last",
              [&](const std::string& text) { request.target.loss = parse_real(text, kLosses); });
  line.group("Output");
  line.flag("json", "print the answer as JSON", as_json);
  line.flag("quiet", "print nothing but errors", quiet);
  define_fork_options(line, typed);
  line.parse(arguments);
  line.refuse_idle("json", lists, "--list prints a table", "one of them");
  line.refuse_idle("json", quiet, "--quiet prints nothing", "one of them");
  line.refuse_idle("list", quiet, "--quiet prints nothing", "one of them");
  if (request.target.accuracy && request.target.loss) {
    throw Error("--target-loss: there is --target-accuracy; accepted: one of them");
  }
  request.configuration = configuration_of_run(request.run, typed);
  request.configuration.threads = typed.threads;
  std::vector<std::string> changes;
  for (const RunOption& option : run_options()) {
    if (option.affects != Affects::bits || !line.given().contains(option.name)) continue;
    changes.push_back(fmt::format("{} {}", option.name, option.text(typed).value_or("")));
  }
  if (!changes.empty()) {
    request.changes = fmt::format("{}", fmt::join(changes, ", "));
    request.change = [typed, given = line.given()](RunConfiguration& run) {
      set_given(run, typed, given);
    };
    RunConfiguration changed = request.configuration;
    request.change(changed);
    require_none_idle(line.given(), changed);
    require_valid(changed);
    require_forkable(request.configuration, changed);
  }
  const WhatIfOutput output = lists     ? WhatIfOutput::list
                              : as_json ? WhatIfOutput::json
                              : quiet   ? WhatIfOutput::nothing
                                        : WhatIfOutput::table;
  return std::make_unique<WhatIfCommand>(std::move(request), output);
}

}  // namespace rubato::app
