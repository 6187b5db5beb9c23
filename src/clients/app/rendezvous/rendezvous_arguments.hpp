#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// What `rubato rendezvous` is asked for.
struct RendezvousArguments {
  /// To listen at; 0 is any that is free.
  int port = 29500;
  /// To listen at; empty is all network interfaces.
  std::string address{};
  /// Empty is no token.
  std::string token_file{};
  bool quiet = false;
};

/// Reads the arguments behind the command. Throws HelpAsked, and Error for what the user got wrong.
[[nodiscard]] RendezvousArguments parse_rendezvous_arguments(
    std::span<const std::string> arguments);

}  // namespace rubato::app
