#include "app/run_program.hpp"

#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

Words::Words(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.front() == '\'') word = word.substr(1, word.size() - 2);
    words_.push_back(word);
  }
}

Words operator+(Words words, const Words& more) {
  words.words_.insert(words.words_.end(), more.words_.begin(), more.words_.end());
  return words;
}

pid_t start_program(std::vector<std::string> arguments, const std::filesystem::path& folder,
                    const std::filesystem::path& out, const std::filesystem::path& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  if (err == out) {
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT,
                                     0600);
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t process = 0;
  if (posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
    ADD_FAILURE() << "cannot start " << arguments[0];
    process = 0;
  }
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

ProgramResult run_program(const std::filesystem::path& program, const Words& arguments,
                          const std::filesystem::path& folder, const WhileRunning& during) {
  const TempFolder outputs;
  const std::filesystem::path out = outputs.path() / "out";
  const std::filesystem::path err = outputs.path() / "err";
  ProgramResult result;
  const Words all = Words{program.string()} + arguments;
  if (const pid_t child = start_program(all.all(), folder, out, err); child != 0) {
    if (during) during(child, err);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

std::ptrdiff_t occurrences(const std::string& text, const std::string& part) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

ProgramResult rubato(const Words& arguments, const std::filesystem::path& folder,
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
                AllOf(StartsWith("rubato"), EndsWith(": cannot write the output: " + why + "\n")));
  }
}

}  // namespace rubato::test
