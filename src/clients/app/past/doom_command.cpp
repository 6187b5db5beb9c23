// doom() searches and trains the forks; this file reads the arguments and words the result:
// opening() before anything is trained, and closing(), with the steps that were tried and the
// changes that were made, after it. With --json the opening goes to stderr, so that stdout has
// nothing but the document. The progress is one line on stderr, redrawn at most five times a
// second, which is removed before the result is printed.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/of_part.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "past_commands.hpp"
#include "runs/config/run_option.hpp"
#include "runs/run/doom.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kLongestFork = 1'000'000'000;
constexpr std::int64_t kMostOrders = 1000;
constexpr const char* kEndLossHelp =
    "of its last test or, without a test set, the mean of its last ten steps; null if it is not "
    "finite";
constexpr RealRange kAnyLoss{-1e300, 1e300, true, true, "a number"};

constexpr CommandTexts kDoomTexts{
    "rubato doom",
    "Says from which step on it was inevitable that a run diverged or did not learn. Forks from "
    "steps of the run train on with other orders of the samples; after the first step from which "
    "all of them are lost, too, more are tried with half the rate, the rule root, or the momentum "
    "reset. A training is lost if it diverges, or ends with a loss above a bound.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato doom runs/first\n"
    "  rubato doom runs/first --orders 20 --steps 200 --lost-above 0.5\n"
    "Nothing is written. To look at one of the forks: rubato train --from RUN@STEP\n"
    "--seed N, with a seed that --json lists. Exit codes: 2 for a mistake in the options\n"
    "or files, 24 if output could not be written."};

std::string end_of(const DoomFacts& facts) {
  if (facts.diverged) return fmt::format("diverged after {}", counted(facts.steps, "step"));
  return facts.end
             ? fmt::format("ended with a loss of {:.4g} after {}", *facts.end,
                           counted(facts.steps, "step"))
             : fmt::format("ended with an infinite loss after {}", counted(facts.steps, "step"));
}

// The facts that are known before anything is trained.
std::string opening(const DoomRequest& request, const DoomFacts& facts) {
  const std::string run = request.run.string();
  std::vector<std::string> lines{
      fmt::format("{} {}; its loss began at {:.4g} and was {:.4g} at best", run, end_of(facts),
                  facts.beginning, facts.best),
      fmt::format("a training is lost if it diverges, or ends with a loss above {:.4g}{}",
                  facts.lost_above, facts.lost ? "" : ": this run is fine")};
  if (facts.lost) {
    lines.push_back(fmt::format(
        "at most {} are tried with {} each: up to {} of training, {} at the speed of the run",
        counted(facts.most_tried, "step"), counted(request.orders, "fork"),
        counted(facts.most_steps, "step"), clock_time(facts.most_seconds)));
  }
  std::string text;
  for (const std::string& line : lines) text += wrapped(line, 0, output_width()) + '\n';
  return text;
}

// The sentence about the first step at which the run was lost.
std::string verdict(const DoomResult& result) {
  if (!result.inevitable) {
    return fmt::format("never inevitable: another order saves the run even after its last step, {}",
                       result.facts.steps);
  }
  const std::int64_t step = *result.inevitable;
  if (step == 0) return "inevitable from the beginning: all orders of the samples are lost";
  const Share before = std::ranges::find(result.tried, step - 1, &TriedStep::step)->lost();
  const std::string text =
      fmt::format("after step {}, {} of {} orders {} lost; after step {}", step - 1, before.count,
                  before.of, before.count == 1 ? "is" : "are", step);
  return result.changes.empty()
             ? fmt::format("inevitable only at its end: {}, nothing is left to train", text)
             : fmt::format("inevitable from step {} on: {}, all are", step, text);
}

void add_share(TextTable& table, std::string name, const Share& share) {
  table.add({std::move(name), fmt::format("{} of {}", share.count, share.of),
             fmt::format("{:.0f} %",
                         100.0 * static_cast<double>(share.count) / static_cast<double>(share.of)),
             fmt::format("{:.0f} to {:.0f} %", share.low * 100, share.high * 100)});
}

std::string closing(const DoomResult& result) {
  constexpr const char* kInterval = "95 % interval";
  TextTable steps({Column::right, Column::right, Column::right, Column::right});
  steps.add({"after step", "lost", "share", kInterval});
  for (const TriedStep& tried : result.tried) {
    add_share(steps, fmt::to_string(tried.step), tried.lost());
  }
  std::string text = fmt::format("\n{}\n{}\n", steps.text(output_width()),
                                 wrapped(verdict(result), 0, output_width()));
  if (result.changes.empty()) return text;
  TextTable changes({Column::left, Column::right, Column::right, Column::right});
  changes.add(
      {fmt::format("changed after step {}", *result.inevitable), "saved", "share", kInterval});
  for (const TriedChange& change : result.changes) add_share(changes, change.name, change.saved());
  return fmt::format("{}\n{}", text, changes.text(output_width()));
}

}  // namespace

JsonForm<DoomResult> doom_form() {
  using Facts = DoomFacts;
  const auto of_facts = [](auto member) { return of_part(&DoomResult::facts, member); };
  const JsonForm<Share> share = form_of_object<Share>(
      {{"count", "forks that were", &Share::count},
       {"of", "forks that were trained", &Share::of},
       {"low", "lower end of the 95 % interval of the share, by Wilson's score method, from 0 to 1",
        &Share::low},
       {"high", "upper end", &Share::high}});
  const JsonForm<DoomedFork> fork = form_of_object<DoomedFork>(
      {{"seed", "orders its samples: `rubato train --from RUN@STEP --seed N` repeats it",
        &DoomedFork::seed},
       {"diverged", "whether it diverged", &DoomedFork::diverged},
       {"loss", kEndLossHelp, &DoomedFork::loss},
       {"lost", "whether it diverged, or its loss is above lost_above", &DoomedFork::lost}});
  return form_of_object<DoomResult>(
      {{"run", "its folder", [](const DoomResult& result) { return result.facts.run.string(); }},
       {"steps", "steps that it took", of_facts(&Facts::steps)},
       {"diverged", "whether it ended with a step that diverged", of_facts(&Facts::diverged)},
       {"first_loss", "loss of its first step", of_facts(&Facts::beginning)},
       {"best_loss", "its lowest test loss or mean of ten steps in a row", of_facts(&Facts::best)},
       {"end_loss", kEndLossHelp, of_facts(&Facts::end)},
       {"lost_above", "a training that ends with a loss above this is lost",
        of_facts(&Facts::lost_above)},
       {"lost", "whether the run is lost; if not, nothing is tried", of_facts(&Facts::lost)},
       {"inevitable_from",
        "the first number of steps after which all orders of the samples are lost; that of all its "
        "steps if it was lost at its end only; null if it is not lost, or not even after its last "
        "step",
        &DoomResult::inevitable},
       {"tried", "in ascending order of their steps", &DoomResult::tried,
        form_of_object<TriedStep>(
            {{"step", "the forks begin after so many steps of the run", &TriedStep::step},
             {"lost", "the share of lost forks", &TriedStep::lost, share},
             {"forks", "every fork", &TriedStep::forks, fork}})},
       {"changes", "forks from inevitable_from with something changed", &DoomResult::changes,
        form_of_object<TriedChange>(
            {{"change", "what is different, such as \"rule root\"", &TriedChange::name},
             {"saved", "the share of forks that were not lost", &TriedChange::saved, share},
             {"forks", "every fork", &TriedChange::forks, fork}})}});
}

namespace {

class DoomCommand final : public PastCommand {
 public:
  DoomCommand(DoomRequest request, bool json) : request_(std::move(request)), json_(json) {}

  [[nodiscard]] const RunConfiguration& run() const override { return request_.configuration; }
  [[nodiscard]] ExitCode execute(const LoadWorkload& load) override {
    DoomResult result;
    {
      ForkLine line(request_.orders);
      result = doom(request_, {.replay = line.parts(load),
                               .on_begin = [&](const DoomFacts& facts) { begin(facts); },
                               .on_fork = [&](const std::string& what,
                                              std::int64_t number) { line.begin(what, number); }});
    }
    if (json_) {
      print_out(json_text(doom_form().write(result), 2) + "\n");
    } else if (result.facts.lost) {
      print_text(closing(result));
    }
    return ExitCode::good;
  }

 private:
  // Shows at a terminal which fork is being trained.
  class ForkLine {
   public:
    explicit ForkLine(std::int64_t orders) : orders_(orders) {}

    void begin(const std::string& what, std::int64_t number) {
      what_ = fmt::format("{}: fork {} of {}", what, number, orders_);
    }
    ReplayParts parts(const LoadWorkload& load) {
      return {.load = load,
              .report = warnings_of(kDoomTexts.name),
              .on_begin =
                  [this](const auto& run, std::int64_t first, std::int64_t last) {
                    what_ =
                        fmt::format("repeating steps {} to {} of {}", first, last, run.string());
                  },
              .on_step =
                  [this](std::int64_t steps) {
                    line_.show({{what_, 2}, {fmt::format("step {}", steps), 1}});
                  }};
    }

   private:
    std::int64_t orders_;
    std::string what_;
    WorkLine line_{/*quiet=*/false};
  };

  void begin(const DoomFacts& facts) const {
    const std::string text = opening(request_, facts);
    json_ ? print_error(text) : print_text(text);
  }

  DoomRequest request_;
  bool json_;
};

}  // namespace

std::unique_ptr<PastCommand> parse_doom(std::span<const std::string> arguments) {
  CommandLine line(kDoomTexts);
  DoomRequest request;
  RunConfiguration typed;
  bool json = false;
  line.operands(OperandCount::one, "RUN", "the folder of the run",
                [&](const std::string& text) { request.run = text; });
  line.group("Doom");
  line.whole("orders", "N", "forks from each step, each with another order of the samples", "8",
             request.orders, 1, kMostOrders);
  line.whole("steps", "N",
             "end forks after so many steps, counted from the step of the lowest loss where they "
             "begin before it, or where the run would, if that is sooner",
             "where the run would", request.steps, 1, kLongestFork);
  line.option("lost-above", "X",
              "the loss, of the last test or else of the last ten steps, above which a training is "
              "lost",
              "half of what the run had learned at best",
              [&](const std::string& text) { request.lost_above = parse_real(text, kAnyLoss); });
  const RunOption& threads = run_option("threads");
  line.option(threads.name, threads.value, threads.help, threads.shown_default,
              [&](const std::string& text) { threads.set(typed, text); });
  line.flag("json", "print JSON (docs/records.md): the same, and every fork", json);
  line.parse(arguments);
  request.configuration = configuration_of_run(request.run, typed);
  request.configuration.threads = typed.threads;
  return std::make_unique<DoomCommand>(std::move(request), json);
}

}  // namespace rubato::app
