// transferred() sends the size of the state to all hosts, and then the bytes in pieces of 64 MiB,
// because every host of a group has to make every exchange. fail_over() tries the folder of the
// previous writer, if it is on this machine, then the wanted one, and then a new name beside that.
// RunLocation::take_over() locks a folder; it waits ten seconds for the lock if the previous
// process is known to have ended, two if that is unknown, and not at all if the process still runs.
// The folders of followers are locked, too, so remove_leftovers() recognises those of killed
// processes by a lock that it gets, or by an empty temporary folder.

#include "failover.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"

namespace rubato::hosts_detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "rubato-host-";

// The folder for temporary files. Throws Error if the environment names one that is none.
fs::path temporary_folder() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (!error) return folder;
  // In the order of temp_directory_path().
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (value == nullptr) continue;
    throw_error(
        "${}: '{}' is not a folder; accepted: one in which this host can keep what it has of the "
        "run",
        name, value);
  }
  throw_error("/tmp: {}; accepted: a folder, or another one in $TMPDIR", error.message());
}

// Returns whether the folder belongs to a process that is gone: nobody works in it, and it is too
// old for its owner to be still starting.
bool is_left_over(const fs::path& folder) {
  constexpr std::chrono::minutes kBeginning{1};
  if (!folder.filename().string().starts_with(kPrefix)) return false;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(folder);
  if (age < kBeginning) return false;
  // The process ended before it made the folder of the run.
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) && fs::is_empty(folder, ignored)) return true;
  try {
    static_cast<void>(RunFolder::existing(folder / "run"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

HostFolder::HostFolder() {
  std::string name = (temporary_folder() / fmt::format("{}XXXXXX", kPrefix)).string();
  if (mkdtemp(name.data()) == nullptr) {
    throw OutputError(fmt::format("{}: cannot make the folder: {}", name,
                                  std::generic_category().message(errno)));
  }
  path_ = name;
}

HostFolder::~HostFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void HostFolder::remove_leftovers() noexcept {
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::temp_directory_path())) {
      std::error_code ignored;
      if (is_left_over(entry.path())) fs::remove_all(entry.path(), ignored);
    }
  } catch (const std::exception&) {
    // Another process has removed it, or it belongs to another user.
  }
}

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 36U;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 26U;

// Sends `bytes` of host `from` to the hosts in `to`, where it fills `bytes`.
void send(Hosts& hosts, std::size_t from, const std::vector<bool>& to, std::span<std::byte> bytes) {
  const auto own = static_cast<std::size_t>(hosts.rank());
  std::vector<std::span<const std::byte>> out(to.size());
  std::vector<std::span<std::byte>> in(to.size());
  for (std::size_t host = 0; host < to.size(); ++host) {
    if (own == from && to[host]) out[host] = bytes;
  }
  if (own != from && to[own]) in[from] = bytes;
  hosts.exchange(out, in);
}

}  // namespace

std::string transferred(Hosts& hosts, const StateTransfer& transfer, std::string bytes) {
  const auto own = static_cast<std::size_t>(hosts.rank());
  const bool has_part = own == transfer.from || transfer.to[own];
  std::uint64_t size = bytes.size();
  send(hosts, transfer.from, std::vector(transfer.to.size(), true),
       std::as_writable_bytes(std::span(&size, 1)));
  if (size > kMost) {
    throw_error("another host sends a state of {} bytes; accepted: up to {}", size, kMost);
  }
  if (transfer.to[own]) bytes.resize(size);
  for (std::uint64_t begin = 0; begin < size; begin += kPiece) {
    const std::uint64_t count = std::min(kPiece, size - begin);
    send(hosts, transfer.from, transfer.to,
         has_part ? std::as_writable_bytes(std::span(bytes)).subspan(begin, count)
                  : std::span<std::byte>());
  }
  return bytes;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The time that a killed process may need to end: its last thread releases the lock.
constexpr milliseconds kEnding = seconds(10);
// The time to wait for the lock if it is unknown whether its process has ended.
constexpr milliseconds kDoubt = seconds(2);

fs::path absolute_of(const fs::path& folder) {
  return absolute_path(folder);
}

// Returns an unused name beside a folder: runs/a-2.
fs::path name_beside(const fs::path& folder) {
  std::error_code ignored;
  fs::path name;
  int i = 2;
  do {
    name = fmt::format("{}-{}", folder.string(), i++);
  } while (fs::exists(name, ignored));
  return name;
}

milliseconds patience_with(const std::optional<RunWriter>& writer) {
  if (!writer || writer->process == RunWriter::Process::unknown) return kDoubt;
  return writer->process == RunWriter::Process::ended ? kEnding : milliseconds(0);
}

// Tests whether the folder has room for twice the handover: the host that failed to write there may
// have been stopped by a limit of its own.
bool has_room(const fs::path& folder, const Handover& handover) {
  constexpr std::size_t kLeast = std::size_t{1} << 20U;
  const std::size_t bytes = 2 * std::max(kLeast, handover_bytes(handover).size());
  std::string name = (folder / ".room-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) return false;
  const bool fits = posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
  close(file);
  std::error_code ignored;
  fs::remove(name, ignored);
  return fits;
}

// Takes over the first of `folders` that is available, or else makes a new one beside the wanted
// folder; `why` then says why.
RunLocation location_in(const std::vector<fs::path>& folders, const Failover& failover,
                        milliseconds patience, std::string& why) {
  const auto take_over = [&](const fs::path& folder) {
    return RunLocation::take_over(folder, failover.configuration, failover.handover, patience);
  };
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder, ignored) && !fs::exists(folder / RunFolder::kConfiguration, ignored)) {
      // A host that could still write has made the folder again, below an empty mount point.
      why += fmt::format("{}: there is no {}; is the disk of the run still mounted?\n",
                         folder.string(), RunFolder::kConfiguration);
      continue;
    }
    try {
      return take_over(folder);
    } catch (const OutputError&) {
      throw;
    } catch (const Error& error) {
      // The folder belongs to another run, or the host that wrote it is still alive.
      why += std::string(error.what()) + "\n";
    }
  }
  return take_over(name_beside(failover.wanted));
}

}  // namespace

RunLocation fail_over(const Failover& failover, ElasticHosts& hosts, const Report& report) {
  const fs::path& wanted = failover.wanted;
  const std::optional<RunWriter> before = hosts.writer();
  std::error_code ignored;
  std::vector<fs::path> folders{wanted};
  if (before && before->is_here) {
    const bool has_failed = !before->failure.empty();
    const bool is_wanted = absolute_of(wanted) == before->folder;
    if (has_failed && is_wanted && !has_room(wanted, failover.handover)) {
      throw OutputError(before->failure);
    }
    if (!has_failed && !is_wanted && fs::exists(before->folder, ignored)) {
      folders.insert(folders.begin(), before->folder);
    }
  }
  std::string why;
  if (before && before->is_here && !fs::exists(before->folder, ignored)) {
    why = fmt::format("{}: the folder of the run is gone; is its disk still mounted?\n",
                      before->folder);
  }
  RunLocation location = location_in(folders, failover, patience_with(before), why);
  const fs::path& folder = location.path();
  const std::string now = absolute_of(folder).string();
  const bool has_moved = before && (!before->is_here || before->folder != now);
  if (has_moved || !why.empty()) {
    report(fmt::format("{}the run continues in {} after {} steps{}", why, folder.string(),
                       failover.steps,
                       has_moved ? fmt::format(", previously in {}{}", before->folder,
                                               before->is_here ? "" : " on another machine")
                                 : ""));
  }
  if (has_moved && before->is_here) mark_moved(before->folder, folder, failover.steps);
  return location;
}

bool has_more(const fs::path& folder, std::int64_t steps) {
  const auto files = CheckpointFolder(folder / RunFolder::kCheckpoints, 1).files();
  std::error_code ignored;
  if (files.empty()) return fs::exists(folder / RunFolder::kSummary, ignored);
  return CheckpointFolder::steps_of(files.front()).value_or(0) > steps;
}

RunLocation leave_copy(const Failover& failover) {
  std::vector<fs::path> folders;
  if (!has_more(failover.wanted, failover.steps)) folders.push_back(failover.wanted);
  std::string why;
  return location_in(folders, failover, kDoubt, why);
}

RunLocation temporary_copy(const Failover& failover) {
  const fs::path name = temporary_folder() / absolute_of(failover.wanted).filename();
  std::error_code ignored;
  return RunLocation::take_over(fs::exists(name, ignored) ? name_beside(name) : name,
                                failover.configuration, failover.handover);
}

}  // namespace rubato::hosts_detail
