// The program rubato-train COMMAND, which `rubato train` and similar commands become once they have
// checked their options, if libtorch computes the model.

#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/machine.hpp>
#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/process.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/past/past_commands.hpp"
#include "clients/app/train/evaluate.hpp"
#include "clients/app/train/libtorch_parts.hpp"
#include "clients/app/train/train_arguments.hpp"
#include "clients/app/train/train_programs.hpp"
#include "libtorch/torch_run/torch_workload.hpp"
#include "runs/config/engine.hpp"
#include "runs/config/plugin.hpp"

namespace {

rubato::LoadWorkload workload_of(const rubato::RunConfiguration& run) {
  return rubato::engine_of(run) == rubato::Engine::libtorch ? rubato::torch_workload
                                                            : rubato::dense_workload;
}

int run(const std::vector<std::string>& arguments, char* const* argv) {
  using namespace rubato::app;
  const std::string name = arguments.empty() ? "" : arguments.front();
  if (name == "doctor-probe") {
    return run_reporting_errors("rubato doctor", [&] {
      rubato::use_right_kernels(argv);
      print_out(doctor_probe() + "\n");
      return 0;
    });
  }
  if (name == "eval" || name == "predict") {
    return run_reporting_errors("rubato " + name, [&] {
      const bool predicts = name == "predict";
      const auto options =
          parse_evaluate_arguments(std::span(arguments).subspan(1),
                                   predicts ? EvaluateCommand::predict : EvaluateCommand::evaluate);
      rubato::use_right_kernels(argv, options.run.kernels);
      const rubato::LoadWorkload load = [&](const rubato::RunConfiguration& run) {
        if (!options.other_data) return rubato::torch_workload(run);
        return rubato::recorded_workload(
            run, options.folder, /*labels=*/!predicts, options.unseen,
            [&](const std::string& line) { print_error("rubato " + name + ": " + line + "\n"); });
      };
      try {
        return static_cast<int>((predicts ? predict : evaluate)(options, load));
      } catch (...) {
        rubato::rethrow_of_plugins(*options.run.plugin);
      }
    });
  }
  if (const PastCommandRow* const row = past_command(name)) {
    return run_reporting_errors("rubato " + name, [&] {
      const auto past = row->parse(std::span(arguments).subspan(1));
      rubato::use_right_kernels(argv, past->run().kernels);
      try {
        return static_cast<int>(past->execute(workload_of(past->run())));
      } catch (...) {
        rubato::rethrow_of_plugins(*past->run().plugin);
      }
    });
  }
  const TrainProgram* const program = train_program_of(name);
  if (program == nullptr) {
    print_error("rubato-train: this is a part of the program rubato, which starts it\n");
    return static_cast<int>(ExitCode::usage);
  }
  return run_reporting_errors("rubato " + name, [&] {
    const auto options = parse_train_arguments(std::span(arguments).subspan(1), program->command);
    rubato::use_right_kernels(argv, options.run.kernels);
    if (name == "serve-runs") load_without_threads();
    const auto execute = [&] {
      return run_program(options, [&] {
        if (options.hosts.elastic()) {
          return train_on_elastic_hosts(options, workload_of(options.run), rubato::elastic_hosts);
        }
        return options.hosts.several()
                   ? train_on_hosts(options, workload_of(options.run), rubato::c10d_hosts)
                   : program->execute(options, rubato::torch_workload);
      });
    };
    if (!options.hosts.several() || options.hosts.elastic()) return execute();
    // The message of an error begins with the host on which it occurred.
    return run_reporting_errors(fmt::format("rubato {}: host {}", name, options.hosts.meeting.rank),
                                execute);
  });
}

}  // namespace

int main(int argc, char** argv) {
  rubato::app::prepare_streams();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  rubato::leave(rubato::run_with_enough_stack([&] { return run(arguments, argv); }));
}
