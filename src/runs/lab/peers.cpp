#include "peers.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace rubato::lab {

namespace {

namespace fs = std::filesystem;

std::optional<fs::path> peer_program(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& program : {folder / name, folder / ".." / "libexec" / "rubato" / name}) {
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

// The text quoted for the shell.
std::string quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

struct ClosePipe {
  void operator()(std::FILE* pipe) const { static_cast<void>(pclose(pipe)); }
};

}  // namespace

std::vector<Peer> installed_peers() {
  std::vector<Peer> peers;
  if (const auto mpi = peer_program("rubato-peer-mpi")) {
    // More ranks than cores are intended, and nobody else uses the machine.
    const std::string as_root = geteuid() == 0 ? " --allow-run-as-root" : "";
    peers.push_back({.name = "MPI_Allreduce",
                     .command = fmt::format("mpirun --oversubscribe{} -n {{ranks}} {}", as_root,
                                            quoted(mpi->string()))});
  }
  if (const auto gloo = peer_program("rubato-peer-gloo")) {
    peers.push_back({.name = "gloo", .command = quoted(gloo->string())});
  }
  return peers;
}

std::vector<double> measure(const Peer& peer, const ReduceTask& task,
                            const MeasureOptions& options) {
  std::string command = peer.command;
  if (const std::size_t place = command.find("{ranks}"); place != std::string::npos) {
    command.replace(place, std::string_view("{ranks}").size(), fmt::to_string(task.cores));
  }
  command +=
      fmt::format(" {} {} {} {} {} 2>/dev/null", task.size, options.seconds, task.cores,
                  choice_name(kArrivals, options.arrival), choice_name(kCaches, options.cache));
  // NOLINTNEXTLINE(cert-env33-c): the command is this program's own, quoted
  const std::unique_ptr<std::FILE, ClosePipe> pipe(popen(command.c_str(), "r"));
  if (pipe == nullptr) return {};
  std::vector<double> seconds;
  for (double run = 0; std::fscanf(pipe.get(), "%lf", &run) == 1;) seconds.push_back(run);
  // A peer that was killed did not print its last line.
  std::array<char, 4> last{};
  const bool whole =
      std::fscanf(pipe.get(), "%3s", last.data()) == 1 && std::string_view(last.data()) == "end";
  return whole ? seconds : std::vector<double>{};
}

Entrant entrant(const Peer& peer, const ReduceTask& task) {
  return {.name = peer.name, .take_turn = [peer, task](const MeasureOptions& options) {
            return measure(peer, task, options);
          }};
}

}  // namespace rubato::lab
