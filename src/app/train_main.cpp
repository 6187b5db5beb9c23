// rubato-train COMMAND: what `rubato train` and its like become once their options are checked,
// where libtorch computes the model.

#include <string>
#include <vector>

#include <rubato/machine/kernels.hpp>
#include <rubato/torch_run/torch_workload.hpp>
#include <rubato/train/training_error.hpp>

#include "app/command_line.hpp"
#include "app/doctor_probe.hpp"
#include "app/evaluate_arguments.hpp"
#include "app/evaluate_run.hpp"
#include "app/output.hpp"
#include "app/train_arguments.hpp"
#include "app/train_programs.hpp"

int main(int argc, char** argv) {
  using namespace rubato::app;
  prepare_streams();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
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
      if (!options) return 0;
      rubato::use_right_kernels(argv, options->run.kernels);
      return static_cast<int>((predicts ? predict : evaluate)(*options, rubato::torch_workload));
    });
  }
  const TrainProgram* const program = train_program_of(name);
  if (program == nullptr) {
    print_error("rubato-train: this is a part of the program rubato, which starts it\n");
    return static_cast<int>(ExitCode::usage);
  }
  return run_reporting_errors("rubato " + name, [&] {
    const auto options = parse_train_arguments(std::span(arguments).subspan(1), program->command);
    if (!options) return 0;
    rubato::use_right_kernels(argv, options->run.kernels);
    try {
      return static_cast<int>(program->execute(*options, rubato::torch_workload));
    } catch (const rubato::TrainingError& error) {
      if (options->verbose) print_error(error.details() + "\n");
      throw;
    }
  });
}
