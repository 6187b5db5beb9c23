#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/signal_actions.hpp"

namespace rubato::app {

/// Which of several hosts `rubato train` is asked to be, and how it meets the others.
struct HostArguments {
  int count = 1;
  int rank = 0;
  /// Where they meet; `run` is the run's name where somebody else serves the store.
  std::string address = "127.0.0.1";
  int port = 29500;
  std::string run{};
  /// The store is a TCPStore of c10d's: torchrun's.
  bool is_tcp_store = false;
  std::string interface = "127.0.0.1";
  double weight = 1;
  /// Empty is no token.
  std::string token_file{};
  std::chrono::milliseconds timeout = std::chrono::minutes(5);

  /// Of hosts that come and go: how many there have to be, and how many there may be. 0 are hosts
  /// that do not.
  int least = 0;
  int most = 0;
  /// An elastic host does this when it is asked to terminate.
  OnTerm on_term = OnTerm::leave;

  [[nodiscard]] bool elastic() const { return least > 0; }
  [[nodiscard]] bool several() const { return count > 1 || elastic(); }

  friend bool operator==(const HostArguments&, const HostArguments&) = default;
};

/// What the environment has for a name; empty where it has nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// That of this process.
[[nodiscard]] std::optional<std::string> environment_of_process(const std::string& name);

/// The options of several hosts, while they are read: what they say counts only once all are known.
class HostOptions {
 public:
  explicit HostOptions(HostArguments& arguments, Environment environment = environment_of_process);

  /// Adds them to a command; must live as long as it.
  void define(CommandLine& line);
  /// Once the command has been parsed: sets the arguments. Throws Error where they contradict each
  /// other or the environment has not what it is asked for.
  void finish(const CommandLine& line);

 private:
  void take_environment(const CommandLine& line);
  void finish_elastic(const CommandLine& line);

  HostArguments& arguments_;
  Environment environment_;
  bool from_environment_ = false;
};

/// Reads a rendezvous, "HOST:PORT" or "HOST:PORT/NAME", into the arguments. Throws Error.
void read_rendezvous(const std::string& text, HostArguments& arguments);

/// The token in a file, without the line's end. Throws Error where the file cannot be read, is
/// empty or has more than a line.
[[nodiscard]] std::string token_in(const std::string& file);

}  // namespace rubato::app
