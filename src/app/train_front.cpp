#include "app/train_front.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/core/error.hpp>
#include <rubato/machine/kernels.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/recipe/quadratic_options.hpp>
#include <rubato/run/dense_workload.hpp>
#include <rubato/train/training_error.hpp>

#include "app/evaluate_arguments.hpp"
#include "app/output.hpp"
#include "app/train_arguments.hpp"
#include "app/train_programs.hpp"
#include "config/batch_policy.hpp"
#include "config/engine.hpp"
#include "config/trace_source.hpp"
#include "core/process.hpp"
#include "run/step_source.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr const char* kProgram = "rubato-train";
constexpr std::int64_t kBuiltinDigits = 12'000;

// Where that is known without reading files.
std::optional<std::int64_t> samples_of(const RunConfiguration& run) {
  if (!model_entry(run.model).classifies) return parse_quadratic(run.model).samples;
  if (run.data != RunConfiguration().data || run.validation) return std::nullopt;
  return kBuiltinDigits;
}

// What can be wrong with a trace before the data are read. How many samples the IDX files hold is
// known only then, so that here no step is too large for them and no number of epochs too high.
void check_trace(const RunConfiguration& run) {
  std::error_code ignored;
  const auto file = trace_file(run.trace);
  // What comes out of a pipe can be read once only, by the program that trains.
  if (file && std::filesystem::is_fifo(*file, ignored)) return;
  const auto samples = samples_of(run);
  const RunSteps steps = load_run_steps(run);
  if (samples) require_room_for_batches(run, *samples);
  const Trace* const trace = std::get_if<Trace>(&steps);
  // By a policy nobody knows which rows there will be.
  if (trace == nullptr || has_batch_policy(run)) {
    static_cast<void>(make_step_source(run, steps, 0));
    return;
  }
  const Planner planner(*trace, {.dataset_size = samples.value_or(kMaxDatasetSize),
                                 .minibatch_size = run.minibatch,
                                 .cores = run.cores,
                                 .remainder = run.remainder});
  if (samples) require_epochs(planner, run.epochs);
}

// As exec() takes it, but for the pointers.
std::vector<std::string> command_line(const std::string& program, const char* command,
                                      std::span<const std::string> arguments) {
  std::vector<std::string> line{program, command};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

// Becomes the program that loads libtorch.
[[noreturn]] void become_train_program(const char* command,
                                       std::span<const std::string> arguments) {
  const std::string program = train_program().string();
  // What c10d would log is said by the error that follows.
  setenv("GLOG_minloglevel", "3", 0);  // NOLINT(concurrency-mt-unsafe): there is one thread
  const std::vector<std::string> line = command_line(program, command, arguments);
  execv(program.c_str(), exec_pointers(line).data());
  throw Error(fmt::format("cannot start {}: {}", program, std::generic_category().message(errno)));
}

int start(const char* command, std::span<const std::string> arguments) {
  const TrainProgram& program = *train_program_of(command);
  const auto options = parse_train_arguments(arguments, program.command);
  if (!options) return 0;
  if (program.command != TrainCommand::calibrate) check_trace(options->run);
  // Several hosts meet by what libtorch has, whoever computes the model.
  if (engine_of(options->run) == Engine::libtorch || options->hosts.several()) {
    become_train_program(command, arguments);
  }
  const std::vector<std::string> line = command_line("rubato", command, arguments);
  use_right_kernels(exec_pointers(line).data(), options->run.kernels);
  try {
    return static_cast<int>(program.execute(*options, dense_workload));
  } catch (const TrainingError& error) {
    if (options->verbose) print_error(error.details() + "\n");
    throw;
  }
}

}  // namespace

path train_program() {
  std::error_code error;
  const path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const path& candidate :
       {folder / kProgram, folder / ".." / "libexec" / "rubato" / kProgram}) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw Error(
      fmt::format("this build is without libtorch and cannot train: no {} in {} or in "
                  "../libexec/rubato; accepted: a build with -DRUBATO_TORCH=ON",
                  kProgram, folder.string()));
}

int train_front(std::span<const std::string> arguments) {
  return start("train", arguments);
}

int calibrate_front(std::span<const std::string> arguments) {
  return start("calibrate", arguments);
}

int verify_front(std::span<const std::string> arguments) {
  return start("verify", arguments);
}

int evaluate_front(std::span<const std::string> arguments) {
  if (!parse_evaluate_arguments(arguments, EvaluateCommand::evaluate)) return 0;
  become_train_program("eval", arguments);
}

int predict_front(std::span<const std::string> arguments) {
  if (!parse_evaluate_arguments(arguments, EvaluateCommand::predict)) return 0;
  become_train_program("predict", arguments);
}

}  // namespace rubato::app
