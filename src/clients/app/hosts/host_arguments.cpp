// The options are read in two passes. define() only stores what is typed; finish() then resolves it
// in this order: the variables of a launcher, the bounds of elastic hosts, the range of the rank,
// and options that have no effect. --hosts env takes the rank and the count from the first entry of
// kLaunchers whose two variables are set; a --rank or --rendezvous that was typed takes precedence
// over the environment. Elastic hosts have no rank, because they are numbered in the order in which
// they join.

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
#include "base/core/throw_error.hpp"
#include "clients/app/line/command_line.hpp"
#include "hosts/rendezvous/socket.hpp"

namespace rubato::app {

namespace {

using rendezvous_detail::kMaxPort;

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
    throw_error("{} in the environment: {}", name, error.what());
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
  C10dOptions& meeting = arguments_.meeting;
  line.group("Hosts");
  line.option("hosts", "N|env",
              "train on N hosts together, each a process with the same options and its own rank; "
              "env: read both from the environment of torchrun, mpirun or srun (docs/hosts.md)",
              "1", [this](const std::string& text) {
                from_environment_ = text == kFromEnvironment;
                if (!from_environment_) {
                  arguments_.meeting.count = static_cast<int>(parse_whole(text, 1, kMaxHosts));
                }
              });
  line.whole("rank", "R", "the rank of this host, from 0; host 0 writes the run folder", "0",
             meeting.rank, 0, kMaxHosts - 1);
  line.option(
      "rendezvous", "HOST:PORT[/NAME]",
      "where the hosts meet: at host 0, or, with a NAME for the run, at a `rubato rendezvous`",
      "127.0.0.1:29500", [&meeting](const std::string& text) { read_rendezvous(text, meeting); });
  line.text("interface", "ADDRESS|NAME",
            "the address or network interface at which the other hosts reach this one",
            meeting.interface, meeting.interface);
  line.real("host-weight", "X",
            "the share of a step that this host computes, relative to the others", "1",
            meeting.weight, kWeights);
  line.option(
      "host-timeout", "SECONDS",
      "how long to wait for another host; has to exceed the longest step, test and checkpoint",
      "300", [&meeting](const std::string& text) {
        const auto seconds = std::chrono::duration<double>(parse_real(text, kSeconds));
        meeting.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(seconds);
      });
  line.whole(
      "min-hosts", "N",
      "let hosts come and go: the run continues with N of them, and waits if there are fewer", "",
      arguments_.least, 1, kMaxHosts);
  line.whole("max-hosts", "N", "the most hosts that may take part; more are refused", "",
             arguments_.most, 1, kMaxHosts);
  line.choice("on-term",
              "what a host of --min-hosts does when it is asked to terminate (SIGTERM, SIGHUP): it "
              "leaves and the others continue, or all stop",
              "leave", "request to terminate", kOnTerms, arguments_.on_term);
  line.text("token-file", "FILE", "a file with a secret that every host needs to take part", "",
            arguments_.token_file);
}

void HostOptions::finish(const CommandLine& line) {
  if (from_environment_) take_environment(line);
  if (arguments_.least > 0 || arguments_.most > 0) finish_elastic(line);
  const int count = arguments_.meeting.count;
  const int rank = arguments_.meeting.rank;
  if (rank >= count) {
    throw Error(arguments_.several()
                    ? fmt::format("--rank {}: there are {} hosts; accepted: 0 to {}", rank, count,
                                  count - 1)
                    : fmt::format("--rank {}: there is 1 host; accepted: with --hosts N", rank));
  }
  line.refuse_idle("on-term", !arguments_.elastic(), "all stop where hosts do not come and go",
                   "with --min-hosts N");
  if (arguments_.several()) return;
  for (const char* const option :
       {"rendezvous", "interface", "host-weight", "host-timeout", "token-file"}) {
    line.refuse_idle(option, !from_environment_, "there is one host", "with --hosts N");
  }
}

void HostOptions::finish_elastic(const CommandLine& line) {
  if (arguments_.least == 0) {
    throw Error("--max-hosts: the hosts do not come and go; accepted: with --min-hosts N");
  }
  const int count = arguments_.meeting.count;
  if (arguments_.most == 0) arguments_.most = std::max(count, arguments_.least);
  if (arguments_.least > count || arguments_.most < count) {
    throw_error(
        "--min-hosts {} --hosts {} --max-hosts {}; accepted: each at least the one before it",
        arguments_.least, count, arguments_.most);
  }
  if (line.given().contains("rank")) {
    throw Error("--rank: hosts that come and go are numbered as they come; accepted: without");
  }
  if (arguments_.meeting.run.empty()) {
    throw Error(
        "--min-hosts: hosts that come and go cannot meet at one of them; accepted: a --rendezvous "
        "HOST:PORT/NAME at a `rubato rendezvous`");
  }
  arguments_.meeting.rank = 0;
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
  C10dOptions& meeting = arguments_.meeting;
  meeting.count = static_cast<int>(whole_in(environment_, launcher->count, 1, kMaxHosts));
  if (!line.given().contains("rank")) {
    meeting.rank = static_cast<int>(whole_in(environment_, launcher->rank, 0, kMaxHosts - 1));
  }
  if (line.given().contains("rendezvous")) return;
  meeting.address = environment_("MASTER_ADDR").value_or(meeting.address);
  if (environment_("MASTER_PORT")) {
    meeting.port = static_cast<int>(whole_in(environment_, "MASTER_PORT", 1, kMaxPort));
  }
  // The agent of torchrun serves one store for all its restarts of the processes, so the restart
  // count is part of the run's name.
  if (environment_("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    meeting.is_tcp_store = true;
    meeting.run = fmt::format("{}/{}", environment_("TORCHELASTIC_RUN_ID").value_or("none"),
                              environment_("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  }
}

void read_rendezvous(const std::string& text, C10dOptions& meeting) {
  const std::size_t slash = text.find('/');
  const std::string place = text.substr(0, slash);
  const std::size_t colon = place.rfind(':');
  const bool named = slash != std::string::npos;
  if (colon == std::string::npos || colon == 0 || (named && slash + 1 == text.size())) {
    throw_error(
        "'{}' is not a rendezvous; accepted: HOST:PORT or HOST:PORT/NAME, such as 10.0.0.1:29500",
        short_line(text));
  }
  meeting.port = static_cast<int>(parse_whole(place.substr(colon + 1), 1, kMaxPort));
  meeting.address = place.substr(0, colon);
  // IPv6 addresses are written in brackets before a port.
  if (meeting.address.starts_with('[') && meeting.address.ends_with(']')) {
    meeting.address = meeting.address.substr(1, meeting.address.size() - 2);
  }
  meeting.run = named ? text.substr(slash + 1) : "";
}

std::string token_in(const std::string& file) {
  if (file.empty()) return {};
  std::ifstream in(file);
  std::string token;
  std::string more;
  if (!in || !std::getline(in, token) || token.empty() || std::getline(in, more)) {
    throw_error(
        "--token-file: no token in '{}'; accepted: a file with one line, such as openssl rand -hex "
        "32 makes",
        file);
  }
  return token;
}

C10dOptions meeting_of(const HostArguments& hosts) {
  C10dOptions meeting = hosts.meeting;
  meeting.token = token_in(hosts.token_file);
  return meeting;
}

}  // namespace rubato::app
