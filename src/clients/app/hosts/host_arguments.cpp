#include "host_arguments.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/text/text.hpp"
#include "clients/app/line/command_line.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMaxPort = 65'535;
constexpr std::string_view kFromEnvironment = "env";
constexpr RealRange kSeconds{1, 1e6, true, true, "a number of seconds from 1 to 1000000"};
constexpr RealRange kWeights{0, 1e6, false, true, "a number above 0 and up to 1000000"};

// The environment variables in which a launcher tells each process its rank and their number.
struct Launcher {
  const char* rank;
  const char* count;
};
// The launchers are torchrun, Open MPI's mpirun and Slurm's srun.
constexpr std::array<Launcher, 3> kLaunchers{{{"RANK", "WORLD_SIZE"},
                                              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                              {"SLURM_PROCID", "SLURM_NTASKS"}}};

std::int64_t whole_in(const Environment& environment, const std::string& name, std::int64_t min,
                      std::int64_t max) {
  try {
    return parse_whole(environment(name).value_or(""), min, max);
  } catch (const Error& error) {
    throw Error(fmt::format("{} in the environment: {}", name, error.what()));
  }
}

}  // namespace

std::optional<std::string> environment_of_process(const std::string& name) {
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

HostOptions::HostOptions(HostArguments& arguments, Environment environment)
    : arguments_(arguments), environment_(std::move(environment)) {}

void HostOptions::define(CommandLine& line) {
  line.group("Hosts");
  line.option("hosts", "N|env",
              "train on N hosts together, each a process with the same options and its own rank; "
              "env: read both from the environment of torchrun, mpirun or srun (docs/hosts.md)",
              "1", [this](const std::string& text) {
                from_environment_ = text == kFromEnvironment;
                if (!from_environment_) {
                  arguments_.count = static_cast<int>(parse_whole(text, 1, kMaxHosts));
                }
              });
  line.option("rank", "R", "the rank of this host, from 0; host 0 writes the run folder", "0",
              [this](const std::string& text) {
                arguments_.rank = static_cast<int>(parse_whole(text, 0, kMaxHosts - 1));
              });
  line.option(
      "rendezvous", "HOST:PORT[/NAME]",
      "where the hosts meet: at host 0, or, with a NAME for the run, at a `rubato rendezvous`",
      "127.0.0.1:29500", [this](const std::string& text) { read_rendezvous(text, arguments_); });
  line.option("interface", "ADDRESS|NAME",
              "the address or network interface at which the other hosts reach this one",
              arguments_.interface,
              [this](const std::string& text) { arguments_.interface = text; });
  line.option("host-weight", "X",
              "the share of a step that this host computes, relative to the others", "1",
              [this](const std::string& text) { arguments_.weight = parse_real(text, kWeights); });
  line.option(
      "host-timeout", "SECONDS",
      "how long to wait for another host; has to exceed the longest step, test and checkpoint",
      "300", [this](const std::string& text) {
        const auto seconds = std::chrono::duration<double>(parse_real(text, kSeconds));
        arguments_.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(seconds);
      });
  line.option(
      "min-hosts", "N",
      "let hosts come and go: the run continues with N of them, and waits if there are fewer", "",
      [this](const std::string& text) {
        arguments_.least = static_cast<int>(parse_whole(text, 1, kMaxHosts));
      });
  line.option("max-hosts", "N", "the most hosts that may take part; more are refused", "",
              [this](const std::string& text) {
                arguments_.most = static_cast<int>(parse_whole(text, 1, kMaxHosts));
              });
  line.option("on-term", "leave|stop",
              "what a host of --min-hosts does when it is asked to terminate (SIGTERM, SIGHUP): it "
              "leaves and the others continue, or all stop",
              "leave", [this](const std::string& text) {
                arguments_.on_term = parse_choice("request to terminate", text, kOnTerms);
              });
  line.option("token-file", "FILE", "a file with a secret that every host needs to take part", "",
              [this](const std::string& text) { arguments_.token_file = text; });
}

void HostOptions::finish(const CommandLine& line) {
  if (from_environment_) take_environment(line);
  if (arguments_.least > 0 || arguments_.most > 0) finish_elastic(line);
  if (arguments_.rank >= arguments_.count) {
    throw Error(fmt::format("--rank {}: there {} {} host{}; accepted: {}", arguments_.rank,
                            arguments_.several() ? "are" : "is", arguments_.count,
                            arguments_.several() ? "s" : "",
                            arguments_.several() ? fmt::format("0 to {}", arguments_.count - 1)
                                                 : std::string("with --hosts N")));
  }
  const IdleOption on_term{.option = "on-term",
                           .idle = !arguments_.elastic(),
                           .why = "all stop where hosts do not come and go",
                           .accepted = "with --min-hosts N"};
  require_none_idle(line, {&on_term, 1});
  if (arguments_.several()) return;
  for (const char* const option :
       {"rendezvous", "interface", "host-weight", "host-timeout", "token-file"}) {
    const IdleOption idle{.option = option,
                          .idle = !from_environment_,
                          .why = "there is one host",
                          .accepted = "with --hosts N"};
    require_none_idle(line, {&idle, 1});
  }
}

void HostOptions::finish_elastic(const CommandLine& line) {
  if (arguments_.least == 0) {
    throw Error("--max-hosts: the hosts do not come and go; accepted: with --min-hosts N");
  }
  if (arguments_.most == 0) arguments_.most = std::max(arguments_.count, arguments_.least);
  if (arguments_.least > arguments_.count || arguments_.most < arguments_.count) {
    throw Error(
        fmt::format("--min-hosts {} --hosts {} --max-hosts {}; accepted: each at least the "
                    "one before it",
                    arguments_.least, arguments_.count, arguments_.most));
  }
  if (line.given().contains("rank")) {
    throw Error("--rank: hosts that come and go are numbered as they come; accepted: without");
  }
  if (arguments_.run.empty()) {
    throw Error(
        "--min-hosts: hosts that come and go cannot meet at one of them; accepted: a --rendezvous "
        "HOST:PORT/NAME at a `rubato rendezvous`");
  }
  arguments_.rank = 0;
}

void HostOptions::take_environment(const CommandLine& line) {
  const auto launcher = std::ranges::find_if(kLaunchers, [&](const Launcher& one) {
    return environment_(one.rank) && environment_(one.count);
  });
  if (launcher == kLaunchers.end()) {
    throw Error(
        "--hosts env: no launcher's variables are in the environment; accepted: with RANK and "
        "WORLD_SIZE, "
        "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS");
  }
  arguments_.count = static_cast<int>(whole_in(environment_, launcher->count, 1, kMaxHosts));
  if (!line.given().contains("rank")) {
    arguments_.rank = static_cast<int>(whole_in(environment_, launcher->rank, 0, kMaxHosts - 1));
  }
  if (line.given().contains("rendezvous")) return;
  arguments_.address = environment_("MASTER_ADDR").value_or(arguments_.address);
  if (environment_("MASTER_PORT")) {
    arguments_.port = static_cast<int>(whole_in(environment_, "MASTER_PORT", 1, kMaxPort));
  }
  // The agent of torchrun serves one store for all its restarts of the processes, so the restart
  // count is part of the run's name.
  if (environment_("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    arguments_.is_tcp_store = true;
    arguments_.run = fmt::format("{}/{}", environment_("TORCHELASTIC_RUN_ID").value_or("none"),
                                 environment_("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  }
}

void read_rendezvous(const std::string& text, HostArguments& arguments) {
  const std::size_t slash = text.find('/');
  const std::string place = text.substr(0, slash);
  const std::size_t colon = place.rfind(':');
  const bool named = slash != std::string::npos;
  if (colon == std::string::npos || colon == 0 || (named && slash + 1 == text.size())) {
    throw Error(
        fmt::format("'{}' is not a rendezvous; accepted: HOST:PORT or HOST:PORT/NAME, such as "
                    "10.0.0.1:29500",
                    short_line(text)));
  }
  arguments.port = static_cast<int>(parse_whole(place.substr(colon + 1), 1, kMaxPort));
  arguments.address = place.substr(0, colon);
  // IPv6 addresses are written in brackets before a port.
  if (arguments.address.starts_with('[') && arguments.address.ends_with(']')) {
    arguments.address = arguments.address.substr(1, arguments.address.size() - 2);
  }
  arguments.run = named ? text.substr(slash + 1) : "";
}

std::string token_in(const std::string& file) {
  std::ifstream in(file);
  std::string token;
  std::string more;
  if (!in || !std::getline(in, token) || token.empty() || std::getline(in, more)) {
    throw Error(
        fmt::format("--token-file: no token in '{}'; accepted: a file with one line, such "
                    "as openssl rand -hex 32 makes",
                    file));
  }
  return token;
}

C10dOptions meeting_of(const HostArguments& hosts) {
  return {.count = hosts.count,
          .rank = hosts.rank,
          .address = hosts.address,
          .port = hosts.port,
          .run = hosts.run,
          .is_tcp_store = hosts.is_tcp_store,
          .interface = hosts.interface,
          .weight = hosts.weight,
          .token = hosts.token_file.empty() ? "" : token_in(hosts.token_file),
          .timeout = hosts.timeout};
}

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
    throw Error(fmt::format("'{}' names no run; accepted: {}", short_line(place), kPlace));
  }
  return read;
}

RendezvousArguments parse_rendezvous_arguments(std::span<const std::string> arguments) {
  constexpr std::int64_t kHighestPort = 65'535;
  RendezvousArguments read;
  CommandLine line("rubato rendezvous",
                   "Serves a meeting place for hosts that train together, for any number of runs, "
                   "until interrupted: `rubato train --hosts N --rendezvous HOST:PORT/NAME`, with "
                   "a new NAME for each run.");
  line.option("port", "PORT", "the port to listen on; 0 chooses a free one",
              fmt::to_string(read.port), [&](const std::string& text) {
                read.port = static_cast<int>(parse_whole(text, 0, kHighestPort));
              });
  line.option("address", "ADDRESS",
              "the address of this machine to listen on, such as 127.0.0.1, instead of all its "
              "network interfaces",
              "", [&](const std::string& text) { read.address = text; });
  line.option("token-file", "FILE",
              "a file with the hosts' secret, which keeps out everybody else; do without only on a "
              "network on which you trust every machine (docs/hosts.md)",
              "", [&](const std::string& text) { read.token_file = text; });
  line.flag("quiet", "print nothing but errors", read.quiet);
  line.footer(
      "Exit codes: 0 after Ctrl-C or a request to terminate, 2 if the port is not\n"
      "available.");
  line.parse(arguments);
  return read;
}

}  // namespace rubato::app
