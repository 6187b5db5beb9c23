// Each command here parses and checks its arguments without libtorch. Then it computes in this
// process, if rubato's own engine has the model and there is one host, or replaces the process by
// rubato-train with the same arguments, which parses them again (docs/adr/0001-two-programs.md);
// `eval` and `predict` always do the latter. Whatever is read twice must be readable twice:
// with_kept_configuration() copies a --config that is a pipe into memory, and a trace that is a
// pipe is left to rubato-train. use_right_kernels() may start this program again, so it is called
// before the trace is read and before anything is computed.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/process.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/past/past_commands.hpp"
#include "evaluate.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/engine.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "train_arguments.hpp"
#include "train_programs.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr const char* kTrainProgram = "rubato-train";

bool names_pipe(const RunConfiguration& run) {
  return std::ranges::any_of(files_of(*run.trace), [](const path& file) {
    std::error_code ignored;
    return std::filesystem::is_fifo(file, ignored);
  });
}

// Returns the arguments for exec(), before they are turned into pointers.
std::vector<std::string> command_line(const std::string& program, const char* command,
                                      std::span<const std::string> arguments) {
  std::vector<std::string> line{program, command};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

// Copies the content of `file` into memory. Returns a descriptor of it that can be opened again:
// `number` if given, else a new one.
int kept_in_memory(const path& file, std::optional<int> number) {
  const std::string text = configuration_text(file);
  const int copy = memfd_create("rubato-configuration", 0);
  const auto size = static_cast<ssize_t>(text.size());
  if (copy < 0 || write(copy, text.data(), text.size()) != size) {
    throw_error("cannot keep the configuration {}: {}", file.string(),
                std::generic_category().message(errno));
  }
  if (!number || copy == *number) return copy;
  dup2(copy, *number);
  close(copy);
  return *number;
}

// Returns a name by which the content of `file` can be read any number of times.
std::string kept_name(const path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (!exists(status) || is_regular_file(status) || is_directory(status)) return file.string();
  if (file == "/dev/stdin") {
    kept_in_memory(file, STDIN_FILENO);
    return file.string();
  }
  const path folder = file.parent_path();
  if (folder == "/dev/fd" || folder == "/proc/self/fd") {
    constexpr int kMostDescriptors = 1 << 20;
    const auto number = parse_whole(file.filename().string(), 0, kMostDescriptors);
    kept_in_memory(file, static_cast<int>(number));
    return file.string();
  }
  return fmt::format("/dev/fd/{}", kept_in_memory(file, std::nullopt));
}

// Replaces this process by the program that loads libtorch.
[[noreturn]] void become_train_program(const char* command,
                                       std::span<const std::string> arguments) {
  const std::string program = train_program().string();
  // The log of c10d would repeat the error that follows.
  setenv("GLOG_minloglevel", "3", 0);  // NOLINT(concurrency-mt-unsafe): there is one thread
  // OpenBLAS would not use more threads of its own, and ends the process if it cannot start them.
  setenv("OPENBLAS_NUM_THREADS", "1", 0);  // NOLINT(concurrency-mt-unsafe)
  const std::vector<std::string> line = command_line(program, command, arguments);
  execv(program.c_str(), exec_pointers(line).data());
  throw_error("cannot start {}: {}", program, std::generic_category().message(errno));
}

int start(const char* command, std::span<const std::string> given) {
  const std::vector<std::string> arguments = with_kept_configuration(given);
  const TrainProgram& program = *train_program_of(command);
  const auto options = parse_train_arguments(arguments, program.command);
  // Several hosts communicate through libtorch, whichever engine computes the model.
  const bool elsewhere = engine_of(options.run) == Engine::libtorch || options.hosts.several();
  if (!elsewhere) {
    // The program that starts again could not read a trace from a pipe that has been read here.
    const std::vector<std::string> line = command_line("rubato", command, arguments);
    use_right_kernels(exec_pointers(line).data(), options.run.kernels);
  }
  // The other program reads the trace again, which a pipe does not allow.
  const bool checked = !elsewhere || !names_pipe(options.run);
  if (checked && program.command != TrainCommand::calibrate) check_trace(options.run);
  if (elsewhere) become_train_program(command, arguments);
  return run_program(options, [&] { return program.execute(options, dense_workload); });
}

int start_past(const char* command, std::span<const std::string> arguments) {
  const auto past = past_command(command)->parse(arguments);
  if (engine_of(past->run()) == Engine::libtorch) become_train_program(command, arguments);
  const std::vector<std::string> line = command_line("rubato", command, arguments);
  use_right_kernels(exec_pointers(line).data(), past->run().kernels);
  return static_cast<int>(past->execute(dense_workload));
}

[[noreturn]] int start_evaluation(const char* command, std::span<const std::string> given,
                                  EvaluateCommand kind) {
  const std::vector<std::string> arguments = with_kept_configuration(given);
  static_cast<void>(parse_evaluate_arguments(arguments, kind));
  become_train_program(command, arguments);
}

}  // namespace

path train_program() {
  std::error_code error;
  const path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const path& candidate :
       {folder / kTrainProgram, folder / ".." / "libexec" / "rubato" / kTrainProgram}) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw_error(
      "this build is without libtorch and cannot train: no {} in {} or in ../libexec/rubato; "
      "accepted: a build with -DRUBATO_TORCH=ON",
      kTrainProgram, folder.string());
}

int train_front(std::span<const std::string> arguments) {
  return start("train", arguments);
}

int serve_front(std::span<const std::string> arguments) {
  return start("serve-runs", arguments);
}

int calibrate_front(std::span<const std::string> arguments) {
  return start("calibrate", arguments);
}

int verify_front(std::span<const std::string> arguments) {
  return start("verify", arguments);
}

int replay_front(std::span<const std::string> arguments) {
  return start_past("replay", arguments);
}

int diff_front(std::span<const std::string> arguments) {
  return start_past("diff", arguments);
}

int doom_front(std::span<const std::string> arguments) {
  return start_past("doom", arguments);
}

int whatif_front(std::span<const std::string> arguments) {
  return start_past("whatif", arguments);
}

int evaluate_front(std::span<const std::string> arguments) {
  return start_evaluation("eval", arguments, EvaluateCommand::evaluate);
}

int predict_front(std::span<const std::string> arguments) {
  return start_evaluation("predict", arguments, EvaluateCommand::predict);
}

std::vector<std::string> with_kept_configuration(std::span<const std::string> arguments) {
  constexpr std::string_view kOption = "--config";
  std::vector<std::string> kept(arguments.begin(), arguments.end());
  const auto border = std::ranges::find(kept, "--");
  for (auto word = kept.begin(); word != border; ++word) {
    if (*word == kOption && word + 1 != border) {
      ++word;
      *word = kept_name(*word);
    } else if (word->starts_with(fmt::format("{}=", kOption))) {
      *word = fmt::format("{}={}", kOption, kept_name(word->substr(kOption.size() + 1)));
    }
  }
  return kept;
}

}  // namespace rubato::app
