#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/core/throw_error.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "past_commands.hpp"
#include "runs/config/run_option.hpp"
#include "runs/run/replay.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;

constexpr CommandTexts kReplayTexts{
    "rubato replay",
    "Repeats steps of a run, exactly as they were, to write down what was not written then: every "
    "minibatch, noise, statistics of parameters, a timeline, weights. The records go to "
    "RUN/replays/A-B, which report, plot and metrics read like a run. Batches, rates, losses and "
    "digests are compared with those of the run.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato replay runs/first --steps 100..120 --log-minibatches\n"
    "  rubato replay runs/first --steps 1..50 --monitor 'conv1.*' --monitor-every 1\n"
    "Exit codes: 23 if a step is another one, 2 for a mistake in the options or\n"
    "files, 24 if output could not be written."};

// Returns the outcome of the comparison in words: only digests tell of all bits.
std::string verdict(const ReplayResult& result) {
  if (result.digests > 0) {
    return counted(result.digests, "digest") + " compared, the same bits";
  }
  if (result.losses > 0) {
    return fmt::format("no digests, {} loss{} compared, the same", result.losses,
                       result.losses == 1 ? "" : "es");
  }
  return "nothing was recorded to compare them with";
}

class ReplayCommand final : public PastCommand {
 public:
  ReplayCommand(ReplayRequest request, bool quiet) : request_(std::move(request)), quiet_(quiet) {}

  [[nodiscard]] const RunConfiguration& run() const override { return request_.configuration; }
  [[nodiscard]] ExitCode execute(const LoadWorkload& load) override {
    ReplayResult result;
    {
      ReplayLine line(kReplayTexts.name, quiet_);
      result = replay(request_, line.parts(load));
    }
    if (!result.difference.empty()) {
      print_text(result.difference + "\n");
      return ExitCode::differs;
    }
    if (quiet_) return ExitCode::good;
    print_text(fmt::format("steps {} to {}: {}\nrecords in {}\n", request_.first, request_.last,
                           verdict(result), result.folder.string()));
    return ExitCode::good;
  }

 private:
  ReplayRequest request_;
  bool quiet_;
};

}  // namespace

std::unique_ptr<PastCommand> parse_replay(std::span<const std::string> arguments) {
  CommandLine line(kReplayTexts);
  ReplayRequest request;
  RunConfiguration typed;
  bool quiet = false;
  line.operands(OperandCount::one, "RUN", "the folder of the run",
                [&](const std::string& text) { request.run = text; });
  line.group("Replay");
  line.option(
      "steps", "A..B", "the steps to repeat, counted from 1 and included", "",
      [&](const std::string& text) { std::tie(request.first, request.last) = parse_steps(text); });
  line.whole("weights", "N", "write the weights after every step that N divides, to weights/", "",
             request.weights_every, 1, kMostSteps);
  line.flag("quiet", "print nothing but errors", quiet);
  define_run_options(line, typed, Commands::replay);
  line.parse(arguments);
  if (!line.given().contains("steps")) {
    throw Error("--steps: none are given; accepted: A..B, such as 100..120");
  }
  request.configuration = configuration_of_run(request.run, typed);
  set_given(request.configuration, typed, line.given());
  require_none_idle(line.given(), request.configuration);
  return std::make_unique<ReplayCommand>(std::move(request), quiet);
}

}  // namespace rubato::app
