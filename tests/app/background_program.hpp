#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// A process of the rubato of this build, whose output is in a file; in a network namespace where
/// one is named. It is killed with its owner.
class BackgroundProgram {
 public:
  BackgroundProgram(const Words& arguments, const std::filesystem::path& folder,
                    const std::string& network = "")
      : output_(outputs_.path() / "output") {
    // ip becomes the program.
    const Words before = network.empty() ? Words{} : Words{"ip", "netns", "exec", network};
    process_ = start_program((before + RUBATO_PROGRAM + arguments).all(), folder, output_, output_);
    runs_ = process_ != 0;
  }
  ~BackgroundProgram() { end(SIGKILL); }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] std::string output() const { return read_file(output_); }
  /// What all its threads are doing, by gdb where that is installed.
  [[nodiscard]] std::string stacks() const {
    const TempFolder folder;
    const std::filesystem::path said = folder.path() / "stacks";
    const std::string command = "timeout 30 gdb --batch --quiet -p " + std::to_string(process_) +
                                " -ex 'thread apply all backtrace' >" + said.string() +
                                " 2>/dev/null";
    if (std::system(command.c_str()) != 0) return "no stacks: gdb is missing, or it has failed\n";
    return read_file(said);
  }
  /// Whether each of its threads waits for something: none computes, or waits for a CPU.
  [[nodiscard]] bool sleeps() const {
    std::error_code error;
    const std::filesystem::path threads = "/proc/" + std::to_string(process_) + "/task";
    for (const auto& thread : std::filesystem::directory_iterator(threads, error)) {
      // The state comes after the name, which is in brackets.
      const std::string all = read_file(thread.path() / "stat");
      if (all.find(") S ") == std::string::npos) return false;
    }
    return !error;
  }
  void signal(int number) const {
    if (runs_) kill(process_, number);
  }
  /// Stands still, until SIGCONT: none of its threads does anything more when this returns.
  void stop() const {
    if (!runs_) return;
    kill(process_, SIGSTOP);
    siginfo_t stopped{};
    waitid(P_PID, static_cast<id_t>(process_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
  }
  /// Whether it does; what it answered is known once it does not.
  bool runs() {
    if (runs_) note(waitpid(process_, &status_, WNOHANG));
    return runs_;
  }
  /// Waits for its end, after a signal where that is not 0.
  void end(int number = 0) {
    if (!runs_) return;
    if (number != 0) kill(process_, number);
    note(waitpid(process_, &status_, 0));
  }
  /// Its exit code, or the signal that ended it as a negative number.
  [[nodiscard]] int code() const {
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  void note(pid_t ended) {
    if (ended == process_) runs_ = false;
  }

  TempFolder outputs_;
  std::string output_;
  pid_t process_ = 0;
  bool runs_ = false;
  int status_ = 0;
};

/// Waits until the condition holds. Fails the test after five minutes, with what `told` says then.
inline void wait_until(const std::function<bool()>& condition,
                       const std::function<std::string()>& told = {},
                       std::chrono::milliseconds between = std::chrono::milliseconds(20)) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return;
    std::this_thread::sleep_for(between);
  }
  FAIL() << "nothing came of it\n" << (told ? told() : "");
}

/// A `rubato rendezvous` in the background, which listens.
class BackgroundRendezvous : public BackgroundProgram {
 public:
  BackgroundRendezvous(const std::filesystem::path& folder, const Words& options)
      : BackgroundProgram(Words("rendezvous") + options, folder) {
    wait_until([this] { return output().ends_with('\n'); });
    const std::string said = output();
    port_ = std::stoi(said.substr(said.rfind(' ')));
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  int port_ = 0;
};

}  // namespace rubato::test
