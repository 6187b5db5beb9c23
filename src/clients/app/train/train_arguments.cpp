// TrainCommandLine defines `train`, `verify` and `calibrate`: all three take the options of a run
// from the table of options, and each adds its own. The arguments are parsed twice, in `rubato` and
// again in rubato-train (docs/adr/0001-two-programs.md), so parsing changes nothing that it reads.
// Checks come in three stages: setters check single values, HostOptions::finish() resolves the
// hosts, and check_together() refuses contradictions, options without effect, and folders that
// cannot be used.

#include "train_arguments.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/run/fork.hpp"

namespace rubato::app {

namespace {

// Refuses options that have an effect with `rubato train` alone.
void check_command(const CommandLine& line, TrainCommand command) {
  if (command == TrainCommand::train) return;
  const bool verifies = command == TrainCommand::verify;
  const Commands asked = verifies ? Commands::verify : Commands::calibrate;
  const std::string_view why =
      verifies ? "`rubato verify` keeps nothing and shows nothing but its table"
               : "`rubato calibrate` measures steps of one core, which do not depend on it";
  constexpr const char* kAccepted = "with `rubato train`";
  for (const RunOption& option : run_options()) {
    line.refuse_idle(option.name, !meet(option.commands, asked), why, kAccepted);
  }
  for (const char* own : {"out", "quiet"}) line.refuse_idle(own, true, why, kAccepted);
}

void check_folder(const TrainArguments& arguments) {
  if (arguments.hosts.elastic() && !arguments.out && !arguments.resume) {
    throw Error(
        "--min-hosts: any host may have to write the run folder, which needs a name; "
        "accepted: with --out FOLDER or --resume RUN");
  }
  require_one_folder(arguments);
  // Hosts that come and go may join a run in which others continue a fork.
  const bool begins = !arguments.resume && !(arguments.continues && is_there(*arguments.out));
  if (arguments.hosts.several() && !arguments.hosts.elastic() && begins &&
      !arguments.run.from.empty()) {
    refuse_fork_of_hosts();
  }
  // A host may join a run that has already made the folder.
  if (!arguments.out || arguments.hosts.elastic()) return;
  if (!arguments.continues || !is_there(*arguments.out)) check_run_folder(*arguments.out);
}

}  // namespace

void check_together(const TrainArguments& arguments, const CommandLine& line,
                    TrainCommand command) {
  check_command(line, command);
  require_none_idle(line.given(), arguments.run);
  line.refuse_idle("log-steps", arguments.quiet, "--quiet prints none", "one of them");
  require_consistent(arguments.run);
  check_folder(arguments);
}

namespace {

using std::filesystem::path;

constexpr std::int64_t kMaxVerifiedSteps = 1'000'000'000;

void define_output(CommandLine& line, TrainArguments& arguments, TrainCommand command) {
  line.group("Output");
  line.option("out", "DIR", "the run folder, which must not exist", "runs/<UTC date and time>",
              [&](const std::string& text) {
                if (text.empty())
                  throw Error("'' is empty; accepted: a folder that does not exist");
                arguments.out = text;
              });
  if (command == TrainCommand::train) {
    line.flag("continue",
              "continue the run in --out if there is one, else begin it: the same command "
              "restarts the run whenever its process has ended",
              arguments.continues);
  }
  line.flag("quiet", "print nothing but errors", arguments.quiet);
  constexpr const char* kOfErrors =
      "print everything known about an error, libtorch's stack included";
  constexpr const char* kOfTraining =
      "print lines instead of the view, with the ranges of values over the steps of each epoch and "
      "where their time went; and everything known about an error, libtorch's stack included";
  line.flag("verbose", command == TrainCommand::train ? kOfTraining : kOfErrors, arguments.verbose);
}

void define_resume(CommandLine& line, TrainArguments& arguments) {
  line.config_of("resume", "RUN|RUN/checkpoints/FILE",
                 "continue the run in the folder RUN from its newest good checkpoint, or from "
                 "FILE; whatever is newer is kept aside",
                 [&](const std::string& text) {
                   ask_to_resume(arguments, text);
                   return *arguments.resume / RunFolder::kConfiguration;
                 });
}

constexpr CommandTexts kTrain{
    "rubato train",
    "Trains a model while the number of accelerator cores, and with it the global batch size, "
    "changes underneath it.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato train\n"
    "  rubato train --data mnist:DIR --trace trace.csv --rule root --epochs 10\n"
    "  rubato train --config runs/2024-05-31T12-00-00Z/config.toml --threads 1\n"
    "  rubato train --resume runs/2024-05-31T12-00-00Z\n"
    "  rubato train --from runs/2024-05-31T12-00-00Z@120 --rule root\n"
    "Exit codes: 2 for a mistake in the options or files, 21 for a missed\n"
    "--target-accuracy, 22 for a loss that is not finite, 24 if output could not be\n"
    "written, 25 for too little memory, 28 for a lost host, 128 plus the signal after\n"
    "one, with a checkpoint: 130 after Ctrl-C, 143 when asked to terminate."};
constexpr CommandTexts kVerify{
    "rubato verify",
    "Trains a few dozen steps of a configuration again and again, on other threads and cores, with "
    "other reducers, faults and resumes, and compares every bit. Takes the options of `rubato "
    "train`, except those of checkpoints and output, which are ignored in a configuration file.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato verify\n"
    "  rubato verify --config runs/2024-05-31T12-00-00Z/config.toml --steps 100\n"
    "Exit codes: 23 if a bit differs, 2 for a mistake in the options or files."};

constexpr CommandTexts kCalibrate{
    "rubato calibrate",
    "Measures how long a minibatch and an update of a model take on one thread of this machine, "
    "and prints the values for --cluster: substep, update, and the bytes of the gradient. Takes "
    "the options of `rubato train`, except those without influence, which are ignored in a "
    "configuration file.",
    "Values in [] are the defaults. Examples:\n"
    "  rubato calibrate --model softmax --minibatch 64\n"
    "  rubato simulate --trace 1024 --cores 64 --cluster \"$(rubato calibrate --factor 0.1)\"\n"
    "Exit code: 2 for a mistake in the options or files."};

// The texts in the order of TrainCommand.
constexpr std::array kTexts{kTrain, kVerify, kCalibrate};

// Reads the options of a command into `arguments`.
class TrainCommandLine : public CommandLine {
 public:
  TrainCommandLine(TrainArguments& arguments, TrainCommand command)
      : CommandLine(kTexts.at(static_cast<std::size_t>(command))), hosts_(arguments.hosts) {
    define_run_options(*this, arguments.run);
    define_output(*this, arguments, command);
    config([&](const path& file) {
      arguments.run = read_configuration(file, option_names(), arguments.run);
    });
    if (command == TrainCommand::train) {
      define_resume(*this, arguments);
      config_of("from", [&](const std::string& text) {
        const Parsed<ForkPoint> point = text;
        static_cast<void>(configuration_of_run(point->run, arguments.run));
        return point->run / RunFolder::kConfiguration;
      });
      hosts_.define(*this);
    }
    if (command == TrainCommand::verify) {
      group("Verification");
      whole("steps", "N", "steps in each training", fmt::to_string(arguments.steps),
            arguments.steps, 2, kMaxVerifiedSteps);
    }
    if (command == TrainCommand::calibrate) {
      group("Calibration");
      real("factor", "X",
           "multiply the seconds by X: 0.1 is a core ten times as fast as a thread here", "1",
           arguments.factor, kPositive);
    }
  }

  void read(std::span<const std::string> given) {
    parse(given);
    hosts_.finish(*this);
  }

 private:
  HostOptions hosts_;
};

}  // namespace

TrainArguments parse_train_arguments(std::span<const std::string> arguments, TrainCommand command) {
  TrainArguments read;
  TrainCommandLine line(read, command);
  line.read(arguments);
  check_together(read, line, command);
  read.given = line.given();
  return read;
}

std::vector<OptionHelp> own_options(TrainCommand command) {
  TrainArguments arguments;
  return own_options(TrainCommandLine(arguments, command));
}

}  // namespace rubato::app
