#include "liveness.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/machine/machine_facts.hpp"

namespace rubato::hosts_detail {

namespace {

// "BOOT/NAMESPACE": processes with the same surroundings see each other.
std::string surroundings() {
  const std::string boot = boot_id();
  struct stat processes {};
  if (boot.empty() || stat("/proc/self/ns/pid", &processes) != 0) return {};
  return fmt::format("{}/{}", boot, processes.st_ino);
}

struct Process {
  char state = 0;
  // Start in ticks since the machine was started: a process id that is used again has another one.
  std::string begun;
};

// Empty if there is no such process.
std::optional<Process> process_of(std::int64_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The second field is a name in brackets, which may contain any character.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  Process process;
  fields >> process.state;
  // `begun` is field 22; the state is field 3.
  for (int field = 4; field <= 22; ++field) fields >> process.begun;
  if (!fields) return std::nullopt;
  return process;
}

// The parts of a name_of_this_process(), as far as they can be read.
struct ProcessName {
  std::string place;
  std::int64_t id = 0;
  std::string begun;
};

ProcessName parts_of(std::string_view name) {
  std::istringstream words{std::string(name)};
  ProcessName parts;
  words >> parts.place >> parts.id >> parts.begun;
  return parts;
}

constexpr std::string_view kNoSteps = "none";

}  // namespace

std::string name_of_this_process() {
  const long id = getpid();
  const auto process = process_of(id);
  return fmt::format("{} {} {}", surroundings(), id, process ? process->begun : "");
}

std::optional<std::int64_t> id_of_process(std::string_view name) {
  const ProcessName parts = parts_of(name);
  return parts.id > 0 ? std::optional(parts.id) : std::nullopt;
}

ProcessState state_of_process(std::string_view name) {
  const ProcessName parts = parts_of(name);
  if (parts.begun.empty() || parts.place != surroundings()) return ProcessState::unknown;
  const auto process = process_of(parts.id);
  // An ended process stays in the list until its parent has taken notice.
  const bool runs =
      process && process->begun == parts.begun && process->state != 'Z' && process->state != 'X';
  return runs ? ProcessState::running : ProcessState::ended;
}

std::int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::seconds>(now).count();
}

std::string text_of(const HostProgress& progress) {
  return fmt::format("{} {} {}",
                     progress.steps ? fmt::to_string(*progress.steps) : std::string(kNoSteps),
                     progress.came, progress.reported);
}

std::optional<HostProgress> parse_progress(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::istringstream words{std::string(text)};
  std::string steps;
  std::string came;
  std::string reported;
  words >> steps >> came >> reported;
  try {
    HostProgress progress{.came = parse_whole(came, 0, kMost),
                          .reported = parse_whole(reported, 0, kMost)};
    if (steps != kNoSteps) progress.steps = parse_whole(steps, 0, kMost);
    return progress;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace rubato::hosts_detail
