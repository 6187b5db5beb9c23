#include "app/train_front.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/config/data_source.hpp>
#include <rubato/config/trace_source.hpp>
#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/plan/shuffle.hpp>

#include "app/train_arguments.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr const char* kProgram = "rubato-train";
constexpr std::int64_t kBuiltinDigits = 12'000;

// What can be wrong with a trace before the data are read. How many samples the IDX files hold is
// known only then, so that here no step is too large for them and no number of epochs too high.
void check_trace(const RunConfiguration& run) {
  std::error_code ignored;
  const auto file = trace_file(run.trace);
  // What comes out of a pipe can be read once only, by the program that trains.
  if (file && std::filesystem::is_fifo(*file, ignored)) return;
  const bool digits = !mnist_folder(run.data);
  const Planner planner(load_trace(run.trace, run.on_trace_end),
                        {.dataset_size = digits ? kBuiltinDigits : kMaxDatasetSize,
                         .minibatch_size = run.minibatch,
                         .cores = run.cores});
  if (digits) require_epochs(planner, run.epochs);
}

int start(const char* command, std::span<const std::string> arguments, TrainCommand kind) {
  const auto options = parse_train_arguments(arguments, kind);
  if (!options) return 0;
  check_trace(options->run);

  const std::string program = train_program().string();
  std::vector<char*> argv{const_cast<char*>(program.c_str()), const_cast<char*>(command)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw Error(fmt::format("cannot start {}: {}", program, std::generic_category().message(errno)));
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
  return start("train", arguments, TrainCommand::train);
}

int verify_front(std::span<const std::string> arguments) {
  return start("verify", arguments, TrainCommand::verify);
}

}  // namespace rubato::app
