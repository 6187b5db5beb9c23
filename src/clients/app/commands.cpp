#include "commands.hpp"

#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/help/help.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"

namespace rubato::app {

namespace {

// This program never loads libtorch, so it answers at once; commands that need libtorch are run by
// another program, rubato-train.
constexpr std::array kCommands{
    Command{"train", "train a model under a trace", train_front},
    Command{"launch", "train on several hosts, as processes of this machine", launch_command},
    Command{"rendezvous", "serve a meeting place for hosts that train together", serve_rendezvous},
    Command{"hosts", "show the state of a run of hosts that come and go", show_hosts},
    Command{"plan", "show what a trace will do before anything is trained", plan_command},
    Command{"data", "fetch known data sets", nullptr, &kData},
    Command{"trace", "read, generate, convert and show traces", nullptr, &kTrace},
    Command{"simulate", "predict time and cost on a cluster, without training", simulate_command},
    Command{"calibrate", "measure a model here, for the modelled time of simulate and train",
            calibrate_front},
    Command{"verify", "prove that training gives the same bits on any threads and cores",
            verify_front},
    Command{"replay", "repeat steps of a run, and write down what was not written then",
            replay_front},
    Command{"diff", "find the step in which two runs part, and why", diff_front},
    Command{"whatif", "say what each change of the devices has cost a run", whatif_front},
    Command{"doom", "say from which step on a lost run was lost", doom_front},
    Command{"compare", "run many trainings and say which rule is best, and how certainly",
            compare_command},
    Command{"report", "write a page of HTML about runs or an experiment", report_command},
    Command{"watch", "show the progress of runs, live or ended", watch_command},
    Command{"plot", "plot curves of runs together, in the terminal or as a picture", plot_command},
    Command{"eval", "print loss and accuracy of a trained model", evaluate_front},
    Command{"predict", "write the outputs of a trained model", predict_front},
    Command{"metrics", "print the metrics of a run as CSV", metrics_command},
    Command{"list", "print the names that options take (rules, models, ...)", list_command},
    Command{"bench", "measure strategies for summing gradients", nullptr, &kBench},
    Command{"doctor", "report what would make training slow or wrong here", doctor_command},
    Command{"conform", "check elastic training of your own, in Python", conform_command},
    Command{"completion", "print a script that completes commands, options and names",
            completion_command},
};

constexpr CommandGroup kRubato{
    .name = "rubato",
    .description =
        "Trains a model while the number of accelerator cores, and with it the global "
        "batch size, changes underneath it, on one machine.",
    .kind = "command",
    .commands = kCommands,
    .footer =
        "`rubato train` without options is a first run: in under a minute it trains a\n"
        "small network on built-in digits under a built-in trace."};

CommandHelp rubato_help() {
  CommandHelp help = help_of_group(kRubato);
  help.options = {
      {.group = "Options",
       .name = "help",
       .letter = "h",
       .help = "print this help; after a command, the help of that command"},
      {.group = "Options", .name = "version", .help = "print the version"},
  };
  return help;
}

int run_rubato(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    print_error(help_text(rubato_help(), output_width()));
    return static_cast<int>(ExitCode::usage);
  }
  const std::string& name = arguments.front();
  const std::span<const std::string> rest = arguments.subspan(1);
  if (name == "--help" || name == "-h" || (name == "help" && rest.empty())) {
    throw HelpAsked(rubato_help());
  }
  if (name == "--version" || name == "-V" || name == "version") {
    print_out("rubato " RUBATO_VERSION "\n");
    return 0;
  }
  if (name == "serve-runs") return serve_front(rest);
  if (name == "help") return run_group(kRubato, std::array{rest.front(), std::string("--help")});
  if (name.starts_with('-')) {
    throw_error(
        "unknown option '{}' before the command; accepted: --help, --version, or a command: {}",
        short_line(name), fmt::join(names_of(kCommands), ", "));
  }
  return run_group(kRubato, arguments);
}

}  // namespace

constinit const Command kProgram{.name = kRubato.name, .run = run_rubato, .group = &kRubato};

}  // namespace rubato::app
