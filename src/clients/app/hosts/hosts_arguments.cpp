#include "hosts_arguments.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "clients/app/line/command_line.hpp"

namespace rubato::app {

namespace {

constexpr const char* kPlace = "HOST:PORT/NAME";

}  // namespace

HostsArguments parse_hosts_arguments(std::span<const std::string> arguments) {
  HostsArguments read;
  std::string place;
  CommandLine line(
      "rubato hosts",
      "Shows a run of hosts that come and go, from their rendezvous and without taking part: which "
      "hosts there are, what they do, how far they are, and which of them writes the run.");
  line.operands(OperandCount::one, kPlace,
                "the rendezvous and the name of the run, as in --rendezvous of `rubato train`",
                [&](const std::string& text) {
                  read_rendezvous(text, read.meeting);
                  place = text;
                });
  line.option("token-file", "FILE", "a file with the secret of the run's hosts", "",
              [&](const std::string& text) { read.meeting.token_file = text; });
  line.flag("json", "print JSON: the same, with absent values as null", read.json);
  line.footer(
      "Exit codes: 0 whatever the run does, 2 for an unknown run or a wrong token,\n"
      "28 for a rendezvous that does not answer.\n"
      "Example:\n"
      "  rubato hosts node0:29500/spring --token-file token");
  line.parse(arguments);
  if (read.meeting.run.empty()) {
    throw Error(fmt::format("'{}' names no run; accepted: {}", place, kPlace));
  }
  return read;
}

}  // namespace rubato::app
