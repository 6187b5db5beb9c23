#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <rubato/hosts/c10d_hosts.hpp>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/signals.hpp"

namespace rubato::app {

/// The place of this process among the hosts of `rubato train`, and how it meets the others.
struct HostArguments {
  /// All but the token, and the texts that have to be equal. `run` is empty if host 0 serves the
  /// store.
  C10dOptions meeting{};
  /// The file with the token of the hosts; no token if empty.
  std::string token_file{};

  /// The least and the greatest number of elastic hosts; 0 if the hosts are not elastic.
  int least = 0;
  int most = 0;
  /// The choice of an elastic host that is asked to terminate.
  OnTerm on_term = OnTerm::leave;

  [[nodiscard]] bool elastic() const { return least > 0; }
  [[nodiscard]] bool several() const { return meeting.count > 1 || elastic(); }

  friend bool operator==(const HostArguments&, const HostArguments&) = default;
};

/// The options with which this process meets the others, but for the texts that have to be equal.
/// Reads the token. Throws Error.
[[nodiscard]] C10dOptions meeting_of(const HostArguments& hosts);

/// Returns the value of an environment variable; empty if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
[[nodiscard]] std::optional<std::string> environment_of_process(const std::string& name);

/// Reads the options of hosts; they are interpreted only once all are known.
class HostOptions {
 public:
  explicit HostOptions(HostArguments& arguments, Environment environment = environment_of_process);

  /// Adds the options to a command, which this object must outlive.
  void define(CommandLine& line);
  /// Sets the arguments; called once the command has been parsed. Throws Error if they contradict
  /// each other, or the environment lacks what they need.
  void finish(const CommandLine& line);

 private:
  void take_environment(const CommandLine& line);
  void finish_elastic(const CommandLine& line);

  HostArguments& arguments_;
  Environment environment_;
  bool from_environment_ = false;
};

/// Reads a rendezvous, "HOST:PORT" or "HOST:PORT/NAME". Throws Error.
void read_rendezvous(const std::string& text, C10dOptions& meeting);

/// Reads the token in a file, without the end of the line; empty if `file` is. Throws Error if the
/// file cannot be read, is empty or has more than one line.
[[nodiscard]] std::string token_in(const std::string& file);

}  // namespace rubato::app
