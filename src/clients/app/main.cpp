#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/tables/text_table.hpp"
#include "clients/app/bench/bench_command.hpp"
#include "clients/app/compare/compare_command.hpp"
#include "clients/app/doctor/doctor_command.hpp"
#include "clients/app/hosts/show_hosts.hpp"
#include "clients/app/launch/launch_command.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/list/list_command.hpp"
#include "clients/app/plan/plan_command.hpp"
#include "clients/app/plot/plot_command.hpp"
#include "clients/app/rendezvous/serve_rendezvous.hpp"
#include "clients/app/simulate/simulate_command.hpp"
#include "clients/app/trace/trace_command.hpp"
#include "clients/app/train/train_front.hpp"
#include "clients/app/watch/watch_command.hpp"

namespace rubato::app {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const std::string> arguments);
};

// This program never loads libtorch, so that it answers at once; a command that needs libtorch is a
// program of its own.
constexpr std::array<Command, 17> kCommands{{
    {"train", "train a model under a trace", train_front},
    {"launch", "train on several hosts, as processes of this machine", launch_command},
    {"rendezvous", "serve a meeting place for hosts that train together", serve_rendezvous},
    {"hosts", "show the state of a run of hosts that come and go", show_hosts},
    {"plan", "show what a trace will do before anything is trained", plan_command},
    {"trace", "read, make up, convert and show traces", trace_command},
    {"simulate", "predict time and cost on a cluster, without training", simulate_command},
    {"calibrate", "measure a model here, for the modelled time of simulate and train",
     calibrate_front},
    {"verify", "prove that training gives the same bits on any threads and cores", verify_front},
    {"compare", "run many trainings and say which rule is best, and how surely", compare_command},
    {"watch", "show how runs elsewhere go on, live or ended", watch_command},
    {"plot", "draw curves of runs over one another, here or as a picture", plot_command},
    {"eval", "print loss and accuracy of a trained model", evaluate_front},
    {"predict", "write the outputs of a trained model", predict_front},
    {"list", "print the names that options take (rules, models, ...)", list_command},
    {"bench", "measure strategies for summing gradients", bench_command},
    {"doctor", "report what would make training here slow or wrong", doctor_command},
}};

std::string help() {
  TextTable commands({Column::left, Column::left}, 2);
  for (const Command& command : kCommands) {
    commands.add({std::string(command.name), std::string(command.summary)});
  }
  TextTable options({Column::left, Column::left}, 2);
  options.add({"--help", "print this help; after a command, the help of that command"});
  options.add({"--version", "print the version"});
  const LineWidth width = output_width();
  return fmt::format(
      "{}\n\nUsage: rubato COMMAND [OPTIONS]\n\nCommands:\n{}\nOptions:\n{}\n{}\n",
      wrapped("Trains a model while the number of accelerator cores, and with it the global batch "
              "size, changes underneath it, on one machine.",
              0, width),
      commands.text(width), options.text(width),
      wrapped("`rubato train` without options is a first run: in under a minute it trains a small "
              "network on built-in digits under a built-in trace.",
              0, width));
}

int run_command(const std::string& name, std::span<const std::string> arguments) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(arguments);
    names.push_back(command.name);
  }
  if (name.starts_with('-')) {
    throw Error(
        fmt::format("unknown option '{}' before the command; accepted: --help, --version, or "
                    "a command: {}",
                    name, fmt::join(names, ", ")));
  }
  throw Error(unknown_name_message("command", name, names));
}

int run(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    print_error(help());
    return static_cast<int>(ExitCode::usage);
  }
  const std::string& name = arguments.front();
  const std::span<const std::string> rest = arguments.subspan(1);
  if (name == "--help" || name == "-h" || (name == "help" && rest.empty())) {
    print_text(help());
    return 0;
  }
  if (name == "--version") {
    print_out("rubato " RUBATO_VERSION "\n");
    return 0;
  }
  if (name == "help") return run_command(rest.front(), std::array{std::string("--help")});
  return run_command(name, rest);
}

// How errors are signed: with the command where there is one.
std::string program_name(std::span<const std::string> arguments) {
  for (const Command& command : kCommands) {
    if (!arguments.empty() && arguments.front() == command.name) {
      return fmt::format("rubato {}", command.name);
    }
  }
  return "rubato";
}

}  // namespace
}  // namespace rubato::app

int main(int argc, char** argv) {
  rubato::app::prepare_streams();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return rubato::app::run_reporting_errors(rubato::app::program_name(arguments),
                                           [&] { return rubato::app::run(arguments); });
}
