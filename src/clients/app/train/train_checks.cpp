#include "train_checks.hpp"

#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "clients/app/line/idle_options.hpp"
#include "runs/config/run_option.hpp"

namespace rubato::app {

namespace {

void refuse(const CommandLine& line, const std::string& name, std::string_view why) {
  const IdleOption option{
      .option = name, .idle = true, .why = why, .accepted = "with `rubato train`"};
  require_none_idle(line, {&option, 1});
}

// Refuses options that have an effect with `rubato train` alone.
void check_command(const CommandLine& line, TrainCommand command) {
  if (command == TrainCommand::train) return;
  const bool verifies = command == TrainCommand::verify;
  const Commands asked = verifies ? Commands::verify : Commands::calibrate;
  const std::string_view why =
      verifies ? "`rubato verify` keeps nothing and shows nothing but its table"
               : "`rubato calibrate` measures steps of one core, which do not depend on it";
  for (const RunOption& option : run_options()) {
    if (!meet(option.commands, asked)) refuse(line, option.name, why);
  }
  for (const char* own : {"out", "quiet"}) refuse(line, own, why);
}

void check_folder(const TrainArguments& arguments) {
  if (arguments.hosts.elastic() && !arguments.out && !arguments.resume) {
    throw Error(
        "--min-hosts: any host may have to write the run folder, which needs a name; "
        "accepted: with --out FOLDER or --resume RUN");
  }
  require_one_folder(arguments);
  // A host may join a run that has already made the folder.
  if (!arguments.out || arguments.hosts.elastic()) return;
  if (!arguments.continues || !is_there(*arguments.out)) check_run_folder(*arguments.out);
}

}  // namespace

void check_together(const TrainArguments& arguments, const CommandLine& line,
                    TrainCommand command) {
  check_command(line, command);
  require_none_idle(line.given(), arguments.run);
  const IdleOption steps{.option = "log-steps",
                         .idle = arguments.quiet,
                         .why = "--quiet prints none",
                         .accepted = "one of them"};
  require_none_idle(line, {&steps, 1});
  require_consistent(arguments.run);
  check_folder(arguments);
}

}  // namespace rubato::app
