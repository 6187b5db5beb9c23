// measure() times the runs of one contestant, an Entrant makes its contestant anew for each turn,
// and measure_in_turn() pools the runs of all turns. Filling the buffers and flushing the caches
// are not timed, and the time until the last buffer arrives is subtracted. A peer is a program of
// its own: it gets the task as arguments and prints the seconds of each run and then "end", without
// which all of its numbers are discarded.

#include "measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"
#include "base/core/text/text.hpp"
#include "base/machine/machine_facts.hpp"

namespace rubato::lab {

namespace {

// The result that every strategy must have: payload() has the period 17 in k.
float expected(const ReduceTask& task, std::size_t k) {
  float sum = 0;
  for (std::int64_t core = 0; core < task.cores; ++core) sum += payload(core, k);
  if (!task.fused) return sum;
  float parameter = kParameter;
  float velocity = kVelocity;
  sgd_step(std::span(&parameter, 1), std::span(&velocity, 1), std::span<const float>(&sum, 1),
           {.gradient_factor = 1.0F / static_cast<float>(task.cores),
            .learning_rate = kLearningRate,
            .momentum = kMomentum});
  return parameter;
}

void check_result(const Contestant& contestant, const ReduceTask& task) {
  constexpr std::size_t kPeriod = 17;
  std::vector<float> values(kPeriod);
  for (std::size_t k = 0; k < kPeriod; ++k) values[k] = expected(task, k);
  const std::span<const float> result = contestant.result();
  RUBATO_CHECK(result.size() == task.size, "a result has the size of a buffer");
  bool right = true;
  for (std::size_t k = 0; k < result.size(); ++k) right &= result[k] == values[k % kPeriod];
  RUBATO_CHECK(right, "only a strategy with a correct result is measured");
}

// Summarises at least one run.
Measurement pooled(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {.median = seconds[seconds.size() / 2],
          .min = seconds.front(),
          .max = seconds.back(),
          .runs = static_cast<std::int64_t>(seconds.size())};
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<double> measure(Contestant& contestant, const ReduceTask& task,
                            const MeasureOptions& options, const Clock& clock) {
  contestant.prepare();
  const double first = clock();
  contestant.run(arrivals_of(Arrival::simultaneous, task.cores, 0));
  const double once = clock() - first;
  check_result(contestant, task);

  const Arrivals arrivals = arrivals_of(options.arrival, task.cores, wait_for_last(once));
  Flusher flusher(options.cache);
  std::vector<double> seconds;
  const double begin = clock();
  while (has_another_run(seconds.size(), clock() - begin, options.seconds)) {
    contestant.prepare();
    flusher.flush();
    const double start = clock();
    contestant.run(arrivals);
    seconds.push_back(clock() - start - arrivals.back());
  }
  return seconds;
}

Entrant entrant(std::string_view name, MakeContestant make, const ReduceTask& task, Clock clock) {
  return {.name = std::string(name),
          .take_turn = [make = std::move(make), task,
                        clock = std::move(clock)](const MeasureOptions& options) {
            const auto contestant = make();
            return measure(*contestant, task, options, clock);
          }};
}

Entrant entrant(std::string_view strategy, const ReduceTask& task, Workers& workers) {
  return entrant(
      strategy,
      [name = std::string(strategy), task, &workers] {
        return make_contestant(name, task, workers);
      },
      task);
}

std::vector<std::optional<Measurement>> measure_in_turn(std::span<const Entrant> entrants,
                                                        const MeasureOptions& options,
                                                        const OnTurn& on_turn) {
  MeasureOptions of_turn = options;
  of_turn.seconds /= kRounds;
  std::vector<std::vector<double>> seconds(entrants.size());
  std::vector<bool> failed(entrants.size(), false);
  for (int round = 1; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      if (failed[i]) continue;
      on_turn(entrants[i].name, round);
      const std::vector<double> turn = entrants[i].take_turn(of_turn);
      failed[i] = turn.empty();
      seconds[i].insert(seconds[i].end(), turn.begin(), turn.end());
    }
  }
  std::vector<std::optional<Measurement>> measurements(entrants.size());
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    if (!failed[i]) measurements[i] = pooled(std::move(seconds[i]));
  }
  return measurements;
}

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
                                            shell_quoted(mpi->string()))});
  }
  if (const auto gloo = peer_program("rubato-peer-gloo")) {
    peers.push_back({.name = "gloo", .command = shell_quoted(gloo->string())});
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

namespace {

// Data and unified caches of the first processor, such as "L1 48K, L2 1024K, L3 32768K".
std::string caches() {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", i);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) break;
    if (first_line(folder / "type") == "Instruction") continue;
    text += fmt::format("{}L{} {}", text.empty() ? "" : ", ", first_line(folder / "level"),
                        first_line(folder / "size"));
  }
  return text.empty() ? "unknown" : text;
}

std::string kernel() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {}", names.sysname, names.release);
}

// The BLAS that Debian's alternatives provide to programs that train.
std::string blas() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/etc/alternatives", ignored)) {
    if (!entry.path().filename().string().starts_with("libblas.so.3")) continue;
    return fs::read_symlink(entry.path(), ignored).string();
  }
  return "unknown";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment() {
#ifdef __clang__
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return {{"processor", processor_name()},
          {"caches", caches()},
          {"hardware_threads", fmt::to_string(std::max(1U, std::thread::hardware_concurrency()))},
          {"kernel", kernel()},
          {"compiler", compiler},
          {"blas", blas()}};
}

}  // namespace rubato::lab
