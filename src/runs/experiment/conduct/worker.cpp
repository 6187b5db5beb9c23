// Workers need no lock (docs/adr/0078): a result is published by renaming its folder, which fails
// if there is a result already, and then both are compared. A claim is a symbolic link, as making
// one fails if there is one, and it has its content from the beginning. A claim whose worker is
// gone stays, and another one with the next number is made: removing it might hit the claim of
// somebody who has just done the same. All of them are removed once the run has a result. The lock
// of a worker's folder says only that the worker is gone, and only to processes of the same start
// of the same machine, whose boot id is in the folder's name (GoneWorker). An attempt is moved if
// its worker is gone, and copied if the worker may be alive (copy_run()). Other workers rename and
// remove folders at any time, so an error in reading them usually means that there is nothing to
// take.

#include "worker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kKinds{kRunsFolder, kTuneFolder};
constexpr std::string_view kDifferent = "different";
constexpr std::string_view kDamaged = "damaged";
constexpr std::string_view kFailed = ".failed";
// Names in the folder of a worker: a run that is being copied, and a file that is being written.
constexpr std::string_view kCopy = "copy";
constexpr std::string_view kFile = "file";
constexpr std::chrono::seconds kAtWork{60};
constexpr std::chrono::hours kForgotten{1};

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found = paths_in(folder);
  std::error_code ignored;
  std::erase_if(found, [&](const fs::path& path) { return !fs::is_directory(path, ignored); });
  return found;
}

std::string name_of_machine() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "unknown";
  return name.data();
}

// The start of the operating system in whose processes this one is, in eight digits: equal in all
// containers of a machine, and another one after the machine was restarted.
std::string start_of_machine() {
  std::array<char, 8> digits{};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const bool known = file >= 0 && read(file, digits.data(), digits.size()) == std::ssize(digits);
  if (file >= 0) close(file);
  return known ? std::string(digits.data(), digits.size()) : std::string();
}

// The start of the machine in the name of a worker's folder, MACHINE.START.PROCESS.
std::string start_in(const fs::path& worker) {
  const fs::path name = worker.filename().stem();
  const std::string start = name.extension().string();
  return start.empty() ? start : start.substr(1);
}

// Holds the lock of the folder of a worker that is gone.
class GoneWorker {
 public:
  explicit GoneWorker(const fs::path& worker) {
    const std::string start = start_of_machine();
    if (start.empty() || start_in(worker) != start) return;
    descriptor_ = open(worker.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    close(std::exchange(descriptor_, -1));
  }
  ~GoneWorker() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  GoneWorker(const GoneWorker&) = delete;
  GoneWorker& operator=(const GoneWorker&) = delete;

  // False if it is not known whether the worker is gone: on another machine, before a restart of
  // this one, or in a file system without locks of folders.
  [[nodiscard]] bool is_known() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

std::vector<fs::path> attempts_in(const fs::path& worker) {
  std::vector<fs::path> found;
  for (const std::string_view kind : kKinds) {
    std::ranges::move(folders_in(worker / kind), std::back_inserter(found));
  }
  return found;
}

bool is_written_within(const fs::path& attempt, std::chrono::seconds time) {
  const auto since = fs::file_time_type::clock::now() - time;
  const std::array<fs::path, 3> written{attempt, attempt / RunFolder::kMetrics,
                                        attempt / RunFolder::kCheckpoints};
  return std::ranges::any_of(written, [&](const fs::path& path) {
    std::error_code error;
    const auto last = fs::last_write_time(path, error);
    return !error && last > since;
  });
}

void remove_attempt(const RunFiles& attempt) {
  std::error_code ignored;
  fs::remove_all(attempt.folder, ignored);
  fs::remove(attempt.log, ignored);
}

std::vector<fs::path> checkpoints_of(const fs::path& run) {
  return CheckpointFolder(run / RunFolder::kCheckpoints, 1).files();
}

// Number of steps after which an attempt could continue; -1 if it could not. One that has ended and
// may be moved is complete.
std::int64_t progress_of(const RunFiles& attempt, bool may_move = true) {
  const RunState state = state_of(attempt);
  if (state == RunState::absent) return -1;
  if (state == RunState::ended && may_move) return std::numeric_limits<std::int64_t>::max();
  const std::vector<fs::path> checkpoints = checkpoints_of(attempt.folder);
  return checkpoints.empty() ? 0 : CheckpointFolder::steps_of(checkpoints.front()).value_or(0);
}

std::string machine_of(const fs::path& run) {
  try {
    std::string machine = read_file(run / kMachine);
    while (machine.ends_with('\n')) machine.pop_back();
    return printable(machine);
  } catch (const Error&) {
    return "an unknown machine";
  }
}

nlohmann::json summary_of(const fs::path& run) {
  try {
    return nlohmann::json::parse(read_file(run / RunFolder::kSummary), nullptr, false);
  } catch (const Error&) {
    return nlohmann::json(nlohmann::json::value_t::discarded);
  }
}

bool have_same_bits(const nlohmann::json& one, const nlohmann::json& other) {
  constexpr std::array<const char*, 6> kBits{
      "end", "steps", "samples", "weights_sha256", "final_test_loss", "final_test_accuracy"};
  const auto value = [](const nlohmann::json& of, const char* key) {
    return of.value(key, nlohmann::json());
  };
  const bool digests = !value(one, "digest").is_null() && !value(other, "digest").is_null();
  return std::ranges::all_of(
             kBits, [&](const char* key) { return value(one, key) == value(other, key); }) &&
         (!digests || one["digest"] == other["digest"]);
}

std::string weights_of(const fs::path& run) {
  const nlohmann::json summary = summary_of(run);
  if (!summary.is_object()) return "no weights";
  const auto hash = summary.find("weights_sha256");
  if (hash == summary.end() || !hash->is_string()) return "no weights";
  constexpr std::size_t kShown = 16;
  return fmt::format("weights {}", hash->get<std::string>().substr(0, kShown));
}

// Copies the files with which a run, or a fork of it, continues: those of its newest checkpoint, or
// of the one after `steps` steps. Somebody else may be training the run. Returns false, and leaves
// nothing, if there is no such checkpoint, or if it is pruned or the run moves away meanwhile.
bool copy_run(const fs::path& from, const fs::path& to, std::optional<std::int64_t> steps = {}) {
  std::vector<fs::path> checkpoints = checkpoints_of(from);
  if (steps) {
    std::erase_if(checkpoints,
                  [&](const fs::path& file) { return CheckpointFolder::steps_of(file) != steps; });
  }
  std::error_code error;
  fs::remove_all(to, error);
  if (checkpoints.empty()) return false;
  fs::create_directories(to / RunFolder::kCheckpoints, error);
  // The checkpoint is copied first: the records only grow, so that they contain its steps.
  const fs::path& newest = checkpoints.front();
  fs::copy_file(newest, to / RunFolder::kCheckpoints / newest.filename(), error);
  const bool has_checkpoint = !error;
  const std::vector<std::string> results = RunFolder::results();
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    const fs::path& file = it->path();
    std::error_code unknown;
    const bool is_result = std::ranges::count(results, file.filename().string()) > 0;
    if (is_result || file.extension() == ".part" || !it->is_regular_file(unknown)) continue;
    fs::copy_file(file, to / file.filename(), error);
    if (error) break;
  }
  if (has_checkpoint && !error && is_there(to / RunFolder::kConfiguration)) return true;
  fs::remove_all(to, error);
  return false;
}

fs::path claim_of(const RunFiles& run, int number) {
  return fmt::format("{}.claim{}", run.folder.string(), number);
}

void remove_claims(const RunFiles& run) {
  std::error_code error;
  for (int number = 1; fs::remove(claim_of(run, number), error); ++number) {
  }
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) cannot_write(to, error);
}

}  // namespace

RunState state_of(const RunFiles& files) {
  if (is_there(files.failed)) return RunState::failed;
  if (is_there(files.folder / RunFolder::kSummary)) return RunState::ended;
  const bool begun = is_there(files.folder / RunFolder::kConfiguration);
  return begun && !checkpoints_of(files.folder).empty() ? RunState::begun : RunState::absent;
}

bool has_result(const RunFiles& files) {
  const RunState state = state_of(files);
  return state == RunState::ended || state == RunState::failed;
}

RunFiles files_of(const fs::path& folder, const std::string& run, bool tuning) {
  const fs::path runs = folder / (tuning ? kTuneFolder : kRunsFolder);
  return {.folder = runs / run,
          .config = runs / (run + ".toml"),
          .log = runs / (run + ".log"),
          .failed = runs / (run + ".failed")};
}

Worker::Worker(fs::path experiment) : experiment_(std::move(experiment)) {
  make_own_folder();
  for (const fs::path& other : folders_in(experiment_ / kWorkFolder)) {
    if (other == path_ || !attempts_in(other).empty()) continue;
    std::error_code ignored;
    if (GoneWorker(other).is_known()) fs::remove_all(other, ignored);
  }
}

Worker::~Worker() {
  std::error_code ignored;
  fs::remove_all(path_ / kCopy, ignored);
  fs::remove(path_ / kFile, ignored);
  for (const std::string_view kind : kKinds) fs::remove(path_ / kind, ignored);
  fs::remove(path_, ignored);
  fs::remove(path_.parent_path(), ignored);
  if (descriptor_ >= 0) close(descriptor_);
}

void Worker::make_own_folder() {
  const std::string name = fmt::format("{}.{}.{}", name_of_machine(), start_of_machine(), getpid());
  const fs::path work = experiment_ / kWorkFolder;
  const auto refuse = [](const fs::path& path, int error) {
    throw_error("{}: cannot make the folder: {}", path.string(),
                std::generic_category().message(error));
  };
  for (int number = 1; descriptor_ < 0;) {
    std::error_code error;
    fs::create_directory(work, error);
    if (error) refuse(work, error.value());
    path_ = work / (number == 1 ? name : fmt::format("{}-{}", name, number));
    if (mkdir(path_.c_str(), 0777) != 0) {
      if (errno == EEXIST) ++number;
      // The last of the other workers may have removed `work`.
      if (errno != EEXIST && errno != ENOENT) refuse(path_, errno);
      continue;
    }
    // A worker that takes this one for gone removes the folder, and holds the lock meanwhile.
    descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 && errno != ENOENT) refuse(path_, errno);
    if (descriptor_ < 0) continue;
    static_cast<void>(flock(descriptor_, LOCK_EX));
    if (!is_there(path_)) close(std::exchange(descriptor_, -1));
  }
}

RunFiles Worker::files_in(const fs::path& worker, const RunFiles& run) const {
  return files_of(worker, run.folder.filename().string(),
                  run.folder.parent_path().filename() == kTuneFolder);
}

void Worker::take_over(const RunFiles& run) const {
  constexpr std::chrono::seconds kEnding{10};
  const RunFiles mine = attempt_at(run);
  std::error_code error;
  fs::create_directories(mine.folder.parent_path(), error);
  // A run that has failed and is tried again has left its folder among the results.
  fs::rename(run.folder, mine.folder, error);
  std::int64_t progress = progress_of(mine);
  RunFiles furthest = mine;
  bool moves = false;
  std::vector<RunFiles> gone;
  for (const fs::path& other : folders_in(experiment_ / kWorkFolder)) {
    const RunFiles attempt = files_in(other, run);
    if (other == path_ || !is_there(attempt.folder)) continue;
    const bool is_gone = GoneWorker(other).is_known();
    if (is_gone) {
      try {
        // Threads of a killed run may live for a moment longer than its process.
        static_cast<void>(RunFolder::existing(attempt.folder, kEnding));
      } catch (const Error&) {
        continue;
      }
      gone.push_back(attempt);
    }
    const std::int64_t steps = progress_of(attempt, is_gone);
    // If two are equal, the one that need not be copied is taken.
    if (steps < progress || (steps == progress && (!is_gone || moves))) continue;
    furthest = attempt;
    progress = steps;
    moves = is_gone;
  }
  if (furthest.folder != mine.folder) {
    const fs::path copy = path_ / kCopy;
    const bool is_copied = !moves && copy_run(furthest.folder, copy);
    if (moves || is_copied) {
      fs::remove_all(mine.folder, error);
      fs::rename(moves ? furthest.folder : copy, mine.folder, error);
    }
  }
  for (const RunFiles& attempt : gone) remove_attempt(attempt);
}

bool Worker::begin_with(const fs::path& ended, const RunFiles& run) const {
  return copy_run(ended, attempt_at(run).folder);
}

bool Worker::share(const fs::path& from, const fs::path& shared, std::int64_t steps) const {
  const fs::path copy = path_ / kCopy;
  std::error_code error;
  fs::create_directories(shared.parent_path(), error);
  if (copy_run(from, copy, steps)) fs::rename(copy, shared, error);
  return !checkpoints_of(shared).empty();
}

bool Worker::claim(const RunFiles& run) const {
  // It leads nowhere, so that nobody who looks for runs follows it.
  const fs::path me = path_.filename();
  std::error_code error;
  for (int number = 1;; ++number) {
    const fs::path claim = claim_of(run, number);
    fs::create_symlink(me, claim, error);
    if (error != std::errc::file_exists || fs::read_symlink(claim, error) == me) {
      // The others' claims may have been removed because the run has been published.
      if (has_result(run)) fs::remove(claim, error);
      return true;
    }
    if (is_at_work(claim, run)) return has_result(run);
  }
}

// The worker writes into the folder of its attempt only once the data have been loaded.
bool Worker::is_at_work(const fs::path& claim, const RunFiles& run) const {
  std::error_code error;
  const fs::path other = experiment_ / kWorkFolder / fs::read_symlink(claim, error);
  if (!is_there(other) || GoneWorker(other).is_known()) return false;
  struct stat made {};
  const bool is_new =
      lstat(claim.c_str(), &made) == 0 && time(nullptr) - made.st_mtime < kAtWork.count();
  return is_new || is_written_within(files_in(other, run).folder, kAtWork);
}

fs::path Worker::set_beside(const fs::path& folder, std::string_view ending) const {
  const fs::path kind = experiment_ / kDifferent / folder.parent_path().filename();
  std::error_code error;
  fs::create_directories(kind, error);
  return unused_path(kind /
                     fmt::format("{}@{}{}", folder.filename().string(), name_of_machine(), ending));
}

Publication Worker::publish(const RunFiles& run) const {
  const RunFiles mine = attempt_at(run);
  write_file(mine.folder / kMachine, name_of_machine() + "\n");
  std::error_code ignored;
  while (true) {
    if (!is_there(run.failed)) {
      std::error_code error;
      fs::rename(mine.folder, run.folder, error);
      if (!error) {
        fs::rename(mine.log, run.log, ignored);
        flush_to_disk(parent_of(run.folder));
        remove_claims(run);
        return {};
      }
      const bool is_second =
          error == std::errc::directory_not_empty || error == std::errc::file_exists;
      if (!is_second) cannot_write(run.folder, error);
    }
    Publication publication{.machine = machine_of(run.folder)};
    const nlohmann::json first = summary_of(run.folder);
    if (!is_there(run.failed) && !first.is_object()) {
      // It is no result: what a failed run has left, or a damaged one.
      static_cast<void>(set_aside(run));
      continue;
    }
    if (!is_there(run.failed) && have_same_bits(first, summary_of(mine.folder))) {
      publication.kind = Publication::Kind::same;
    } else {
      publication.kind = Publication::Kind::differs;
      rename_or_throw(mine.folder, set_beside(run.folder));
    }
    remove_attempt(mine);
    remove_claims(run);
    return publication;
  }
}

Publication Worker::publish_failure(const RunFiles& run, std::string words) const {
  const RunFiles mine = attempt_at(run);
  // The words are the same wherever the run was made.
  const std::string here = mine.folder.string();
  for (std::size_t at = 0; (at = words.find(here, at)) != std::string::npos;) {
    words.replace(at, here.size(), run.folder.string());
  }
  Publication publication;
  const RunState state = state_of(run);
  if (state == RunState::ended || state == RunState::failed) {
    publication.machine = machine_of(run.folder);
    publication.kind = Publication::Kind::same;
  }
  if (state == RunState::ended) {
    publication.kind = Publication::Kind::differs;
    write(set_beside(run.folder, kFailed), words);
  } else if (state != RunState::failed) {
    std::error_code ignored;
    if (is_there(mine.folder)) {
      write_file(mine.folder / kMachine, name_of_machine() + "\n");
      fs::rename(mine.folder, run.folder, ignored);
    }
    write(run.failed, words);
  }
  remove_attempt(mine);
  remove_claims(run);
  return publication;
}

fs::path Worker::set_aside(const RunFiles& run) const {
  const fs::path folder = experiment_ / kDamaged;
  std::error_code error;
  fs::create_directories(folder, error);
  fs::path aside = unused_path(folder / run.folder.filename());
  fs::rename(run.folder, aside, error);
  if (error && is_there(run.folder)) cannot_write(aside, error);
  return aside;
}

void Worker::write(const fs::path& file, std::string_view content) const {
  const fs::path here = path_ / kFile;
  write_file(here, content);
  rename_or_throw(here, file);
  flush_to_disk(parent_of(file));
}

void Worker::clean_up() const {
  for (const fs::path& other : folders_in(experiment_ / kWorkFolder)) {
    if (other == path_) continue;
    const bool is_gone = GoneWorker(other).is_known();
    bool is_needed = !is_gone && is_written_within(other, kForgotten);
    for (const fs::path& attempt : attempts_in(other)) {
      const bool tuning = attempt.parent_path().filename() == kTuneFolder;
      const RunFiles run = files_of(experiment_, attempt.filename().string(), tuning);
      if (has_result(run) && (is_gone || !is_written_within(attempt, kForgotten))) {
        remove_attempt(files_of(other, attempt.filename().string(), tuning));
      } else {
        is_needed = true;
      }
    }
    std::error_code ignored;
    if (!is_needed) fs::remove_all(other, ignored);
  }
}

bool have_same_origin(const fs::path& one, const fs::path& other) {
  const nlohmann::json a = summary_of(one);
  const nlohmann::json b = summary_of(other);
  if (!a.is_object() || !b.is_object() || !have_same_bits(a, b)) return false;
  return std::ranges::all_of(std::array{"kernels", "versions"}, [&](const char* key) {
    return a.contains(key) && b.contains(key) && a[key] == b[key];
  });
}

std::vector<std::string> differences_in(const fs::path& experiment, const std::string& run) {
  std::vector<std::string> differences;
  for (const std::string_view kind : kKinds) {
    for (const fs::path& other : paths_in(experiment / kDifferent / kind)) {
      const std::string name = other.filename().string();
      const std::string of = name.substr(0, name.rfind('@'));
      const RunFiles first = files_of(experiment, of, kind == kTuneFolder);
      const std::string shown = kind == kTuneFolder ? fmt::format("tune/{}", of) : of;
      if (!run.empty() && shown != run) continue;
      const auto words = [](const fs::path& result, bool failed, const std::string& machine) {
        return fmt::format("{} of {} ({})", result.string(), machine,
                           failed ? "failed" : weights_of(result));
      };
      const bool failed = is_there(first.failed);
      std::error_code unknown;
      const bool other_failed = !fs::is_directory(other, unknown);
      // A failure is the file NAME@MACHINE.failed, or .failed-2 if there was one from that machine.
      std::string machine = name.substr(name.rfind('@') + 1);
      if (other_failed) machine.resize(std::min(machine.size(), machine.rfind(kFailed)));
      if (is_there(other / kMachine)) machine = machine_of(other);
      differences.push_back(fmt::format(
          "{} has two results: {}, which is kept, and {}; accepted: the experiment without the "
          "wrong one",
          shown, words(failed ? first.failed : first.folder, failed, machine_of(first.folder)),
          words(other, other_failed, machine)));
    }
  }
  return differences;
}

}  // namespace rubato
