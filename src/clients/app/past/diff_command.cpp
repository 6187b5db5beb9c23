// find_difference() compares; this file turns the arguments into two DiffSides and prints the
// result. --good and --bad each take the options of a whole training as one word:
// with_joined_options() attaches that word to its option, as it begins with dashes, shell_words()
// divides it by the quoting rules of a shell, and parse_train_arguments() reads it, with all checks
// of `rubato train`. If either side needs libtorch, the whole comparison runs in rubato-train. The
// growth of the distance is drawn by gnuplot, or printed as a table if gnuplot is not installed.

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/drawing.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/train/train_arguments.hpp"
#include "past_commands.hpp"
#include "runs/config/engine.hpp"
#include "runs/config/run_option.hpp"
#include "runs/diff/diff.hpp"
#include "runs/diff/diff_report.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMostDiffSteps = 1'000'000'000;
constexpr std::int64_t kMostDiffThreads = 4096;

constexpr CommandTexts kDiffTexts{
    "rubato diff",
    "Finds the step in which two runs part, and the first thing in it that differs: the trace, the "
    "order of the samples, the gradient of a minibatch, the sum, the rate, clipping, the update, "
    "the kernels, or a damaged state. The steps around it are repeated exactly. Then it says how "
    "fast the distance of the two grows. With --good and --bad, it compares a short training with "
    "two configurations instead.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato diff runs/first runs/second\n"
    "  rubato diff runs/first runs/second --seeds --json\n"
    "  rubato diff --good '--model mlp' --bad '--model mlp --reduce ring --exact=false'\n"
    "Exit codes, as those of diff: 0 if both are equal, 1 if they differ, 2 for a\n"
    "mistake in the options or files; 24 if output could not be written."};

// The words of a text, as a shell divides it: at blanks outside of quotes.
std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\\' && quote != '\'' && i + 1 < text.size()) {
      word = word.value_or("") + text[++i];
    } else if (quote != 0 ? letter == quote : letter == '\'' || letter == '"') {
      quote = quote == 0 ? letter : '\0';
      word = word.value_or("");
    } else if (quote == 0 && (letter == ' ' || letter == '\t' || letter == '\n')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      word = word.value_or("") + letter;
    }
  }
  if (quote != 0) throw_error("'{}' has no closing quote; accepted: one", short_line(text));
  if (word) words.push_back(*word);
  return words;
}

// The arguments with OPTIONS in the word of the option that has them, behind a blank: otherwise
// those that begin with dashes would be taken for an option of this command.
std::vector<std::string> with_joined_options(std::span<const std::string> arguments) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    joined.push_back(arguments[i]);
    const bool takes_options = arguments[i] == "--good" || arguments[i] == "--bad";
    if (takes_options && i + 1 < arguments.size()) joined.back() += "= " + arguments[++i];
  }
  return joined;
}

// The configuration of the options in one word, such as "--model mlp --lr 0.1".
RunConfiguration configuration_asked_for(const std::string& text) {
  const TrainArguments read = parse_train_arguments(shell_words(text));
  if (read.out || read.resume || read.continues || read.hosts.several()) {
    throw Error(
        "a training that is compared has no folder and no hosts; accepted: options without --out, "
        "--resume and those of hosts");
  }
  return read.run;
}

Plot distance_plot(const RunsDifference& found, const DiffRequest& request) {
  Plot plot{
      .across = "steps, from the first that differs",
      .up = "log10 of the distance",
      .curves = {{.name = fmt::format("{} and {}", request.sides[0].name, request.sides[1].name)},
                 {.name = "two seeds"}}};
  for (const DistancePoint& point : found.distances) {
    const auto add = [&](std::size_t curve, double distance) {
      if (!(distance > 0)) return;
      plot.curves[curve].points.push_back({static_cast<double>(point.steps), std::log10(distance)});
    };
    add(0, point.between);
    add(1, point.seeds.value_or(0));
  }
  std::erase_if(plot.curves, [](const Plot::Curve& curve) { return curve.points.size() < 2; });
  return plot;
}

void print_distances(const RunsDifference& found) {
  print_text(fmt::format("{:>6}  {:>10}{}\n", "steps", "distance",
                         found.distances.front().seeds ? "   two seeds" : ""));
  for (const DistancePoint& point : found.distances) {
    print_text(fmt::format("{:>6}  {:>10.3g}{}\n", point.steps, point.between,
                           point.seeds ? fmt::format("  {:>10.3g}", *point.seeds) : ""));
  }
}

// A plot, or a table if gnuplot is not there.
void print_growth(const RunsDifference& found, const DiffRequest& request) {
  print_text(growth_text(found));
  const Plot plot = distance_plot(found, request);
  if (plot.curves.empty()) return;
  try {
    print_drawing(drawn_by_gnuplot(gnuplot_script(plot, terminal_form())));
  } catch (const OutputError&) {
    throw;
  } catch (const Error&) {
    print_distances(found);
  }
}

class DiffCommand final : public PastCommand {
 public:
  DiffCommand(DiffRequest request, bool as_json, bool quiet)
      : request_(std::move(request)), as_json_(as_json), quiet_(quiet) {
    request_.kernels = run().kernels;
  }

  // If one of them needs libtorch, so does the comparison.
  [[nodiscard]] const RunConfiguration& run() const override {
    const auto& [a, b] = request_.sides;
    return engine_of(b.configuration) == Engine::libtorch &&
                   engine_of(a.configuration) != Engine::libtorch
               ? b.configuration
               : a.configuration;
  }

  [[nodiscard]] ExitCode execute(const LoadWorkload& load) override {
    RunsDifference found;
    {
      ReplayLine line(kDiffTexts.name, quiet_ || as_json_);
      found = find_difference(request_, line.parts([&](const RunConfiguration& run) {
        return engine_of(run) == Engine::libtorch ? load(run) : dense_workload(run);
      }));
    }
    if (as_json_) {
      print_out(to_json(found, request_));
    } else if (!quiet_) {
      print_text(to_text(found, request_));
      if (!found.distances.empty()) print_growth(found, request_);
    }
    return found.first ? ExitCode::parted : ExitCode::good;
  }

 private:
  DiffRequest request_;
  bool as_json_;
  bool quiet_;
};

}  // namespace

std::unique_ptr<PastCommand> parse_diff(std::span<const std::string> arguments) {
  CommandLine line(kDiffTexts);
  DiffRequest request;
  std::vector<std::string> runs;
  std::array<std::optional<std::string>, 2> options;
  bool as_json = false;
  bool quiet = false;
  line.operands(OperandCount::any, "RUN", "the folders of two runs",
                [&](const std::string& text) { runs.push_back(text); });
  line.group("Comparison");
  line.option("good", "OPTIONS", "options of `rubato train`, in quotes, of the first training", "",
              [&](const std::string& text) { options[0] = text; });
  line.option("bad", "OPTIONS", "the same, of the second training", "",
              [&](const std::string& text) { options[1] = text; });
  line.whole("steps", "N", "with --good and --bad: compare so many steps",
             fmt::to_string(request.steps), request.steps, 1, kMostDiffSteps);
  line.whole("distance", "N",
             "follow the distance of the two for N steps from the first that differs; 0 does not",
             fmt::to_string(request.distance), request.distance, 0, kMostDiffSteps);
  line.flag("seeds", "also measure how far the order of another seed leads from there",
            request.seeds);
  line.whole("threads", "N", run_option("threads").help, "all that it may use", request.threads, 1,
             kMostDiffThreads);
  line.group("Output");
  line.flag("json", "print the result as JSON (docs/records.md)", as_json);
  line.flag("quiet", "print nothing but errors; the exit code says whether they differ", quiet);
  line.parse(with_joined_options(arguments));
  const bool of_options = options[0] || options[1];
  line.refuse_idle("steps", !of_options, "runs are compared as far as both go",
                   "with --good and --bad");
  line.refuse_idle("seeds", request.distance == 0, "no distance is measured",
                   "with --distance above 0");
  line.refuse_idle("json", quiet, "--quiet prints nothing", "one of them");
  if (of_options ? !options[0] || !options[1] || !runs.empty() : runs.size() != 2) {
    throw_error("{} given; accepted: the folders of two runs, or --good and --bad",
                of_options
                    ? "not both of --good and --bad are"
                    : fmt::format("{} run{}", runs.size(), runs.size() == 1 ? " is" : "s are"));
  }
  constexpr std::array kNames{"good", "bad"};
  for (std::size_t i = 0; i < request.sides.size(); ++i) {
    DiffSide& side = request.sides.at(i);
    if (!of_options) {
      side = {.name = runs[i], .run = runs[i], .configuration = configuration_of_run(runs[i], {})};
      continue;
    }
    try {
      side = {.name = kNames.at(i), .configuration = configuration_asked_for(*options.at(i))};
    } catch (const HelpAsked&) {
      throw;
    } catch (const Error& error) {
      throw_error("--{}: {}", kNames.at(i), error.what());
    }
  }
  return std::make_unique<DiffCommand>(std::move(request), as_json, quiet);
}

}  // namespace rubato::app
