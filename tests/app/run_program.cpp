#include "app/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_folder.hpp"

namespace rubato::test {

ProgramResult run_program(const std::filesystem::path& program,
                          const std::vector<std::string>& arguments,
                          const std::filesystem::path& folder, const WhileRunning& during) {
  const TempFolder outputs;
  const std::string out = outputs.path() / "out";
  const std::string err = outputs.path() / "err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);

  std::string name = program;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv{name.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  ProgramResult result;
  pid_t child = 0;
  if (posix_spawn(&child, name.c_str(), &actions, nullptr, argv.data(), environ) == 0) {
    if (during) during(child, err);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  } else {
    ADD_FAILURE() << "cannot start " << program;
  }
  posix_spawn_file_actions_destroy(&actions);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

ProgramResult rubato(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                     const WhileRunning& during) {
  return run_program(RUBATO_PROGRAM, arguments, folder, during);
}

ProgramResult shell(const std::string& command, const std::filesystem::path& folder) {
  return run_program("/bin/bash", {"-c", command, RUBATO_PROGRAM}, folder);
}

void expect_lost_output_is_said(const std::string& arguments) {
  for (const auto& [to, why] :
       {std::pair<std::string, std::string>{">/dev/full", "No space left on device"},
        {">&-", "Bad file descriptor"}}) {
    const ProgramResult result = shell(fmt::format("exec \"$0\" {} {}", arguments, to));
    EXPECT_EQ(result.code, 24) << arguments << to;
    EXPECT_EQ(result.signal, 0) << arguments << to;
    EXPECT_THAT(result.err,
                testing::AllOf(testing::StartsWith("rubato"),
                               testing::EndsWith(": cannot write the output: " + why + "\n")));
  }
}

}  // namespace rubato::test
