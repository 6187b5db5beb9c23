#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// The arguments of `rubato rendezvous`.
struct RendezvousArguments {
  /// The port to listen on; 0 chooses a free one.
  int port = 29500;
  /// The address to listen on; all network interfaces if empty.
  std::string address{};
  /// The file with the token of the hosts; no token if empty.
  std::string token_file{};
  bool quiet = false;
};

/// Reads the arguments after the name of the command. Throws HelpAsked, and Error for a mistake of
/// the user.
[[nodiscard]] RendezvousArguments parse_rendezvous_arguments(
    std::span<const std::string> arguments);

}  // namespace rubato::app
