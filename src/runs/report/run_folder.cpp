// A process holds a run folder by an flock() of the folder itself, which the operating system
// releases when the process ends, in whatever way. After locking, existing_or_new() checks that the
// path still names the locked folder, because another process may have removed it in between. A
// checkpoint is written beside and renamed (write_state()), and older ones are removed only then,
// so that a complete one exists at any time. Checkpointer works on the thread that trains, except
// for keep(), which is why a mutex guards the folder of checkpoints.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/train/step/step_part.hpp"

namespace rubato {

namespace fs = std::filesystem;

std::vector<std::string> RunFolder::results() {
  std::vector<std::string> files{std::string(kSummary), std::string(kModel)};
  const auto add = [&files](std::string_view name) {
    for (const char* const suffix : {"pt", "safetensors"}) {
      files.push_back(fmt::format("{}.{}", name, suffix));
    }
  };
  add("weights");
  for (const OtherWeightsInfo& weights : other_weights()) add(weights.name);
  return files;
}

namespace {

// Creates the folder and its missing parents, and flushes their names to the disk.
std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  const fs::path parent = parent_of(path);
  if (parent != path) error = make_folders(parent);
  if (!error) fs::create_directory(path, error);
  if (!error) flush_to_disk(parent);
  return error;
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    throw_error("{}: the run folder exists; accepted: a path that does not", path_.string());
  }
  error = make_folders(path_);
  if (error) throw_error("{}: cannot make the run folder: {}", path_.string(), error.message());
  lock();
}

RunFolder::RunFolder(fs::path path, std::chrono::milliseconds patience, Existing,
                     const std::function<void()>& on_wait)
    : path_(std::move(path)) {
  lock(patience, on_wait);
}

RunFolder RunFolder::existing(fs::path path, std::chrono::milliseconds patience) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    throw_error("{}: no such folder; accepted: the folder of a run", path.string());
  }
  return {std::move(path), patience, Existing{}};
}

RunFolder RunFolder::existing_or_new(fs::path path, std::chrono::milliseconds patience,
                                     const std::function<void()>& on_wait) {
  while (true) {
    if (const std::error_code error = make_folders(path)) {
      throw_error("{}: cannot make the run folder: {}", path.string(), error.message());
    }
    RunFolder folder(path, patience, Existing{}, on_wait);
    // The process that had the folder may have removed it.
    if (!folder.is_in_place()) continue;
    std::error_code ignored;
    folder.is_new_ = fs::is_empty(path, ignored);
    return folder;
  }
}

bool RunFolder::is_in_place() const {
  struct stat here {};
  if (stat(path_.c_str(), &here) != 0) return false;
  struct stat locked {};
  // Nothing is locked where folders cannot be opened.
  if (descriptor_ < 0 || fstat(descriptor_, &locked) != 0) return true;
  return here.st_dev == locked.st_dev && here.st_ino == locked.st_ino;
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_new_(std::exchange(other.is_new_, false)) {}

RunFolder::~RunFolder() {
  // Removes a folder only if it is empty.
  if (is_new_) static_cast<void>(rmdir(path_.c_str()));
  if (descriptor_ >= 0) close(descriptor_);
}

void RunFolder::lock(std::chrono::milliseconds patience, const std::function<void()>& on_wait) {
  constexpr std::chrono::milliseconds kPause{5};
  constexpr std::chrono::seconds kShort{1};
  bool has_reported = !on_wait;
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + patience;
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const auto now = std::chrono::steady_clock::now();
    if (!has_reported && now >= begin + kShort) {
      has_reported = true;
      on_wait();
    }
    if (now >= end) {
      close(std::exchange(descriptor_, -1));
      throw_error("{}: another process works in this run folder", path_.string());
    }
    std::this_thread::sleep_for(kPause);
  }
}

void RunFolder::write(std::string_view name, std::string_view content) const {
  write(name, [content](const ByteSink& sink) { sink(content); });
}

void RunFolder::write(std::string_view name, const ByteSource& content) const {
  std::error_code ignored;
  fs::create_directories(path_, ignored);
  write_file(file(name), content);
}

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

}  // namespace

std::optional<std::int64_t> CheckpointFolder::steps_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size() - kSuffix.size();
  std::int64_t steps = 0;
  const auto [stop, error] = std::from_chars(begin, end, steps);
  if (error != std::errc() || stop != end || steps < 0) return std::nullopt;
  return steps;
}

CheckpointFolder::CheckpointFolder(fs::path path, std::int64_t keep)
    : path_(std::move(path)), keep_(keep) {
  if (keep < 1) throw_error("{} checkpoints to keep: at least 1 is needed", keep);
}

fs::path CheckpointFolder::write(std::int64_t steps, const State& state) {
  std::error_code error;
  if (fs::create_directory(path_, error)) flush_to_disk(parent_of(path_));
  fs::path file = path_ / fmt::format("{}{}{}", kPrefix, steps, kSuffix);
  write_state(file, state);
  remove_leftovers();
  const std::vector<fs::path> all = files();
  for (std::size_t i = static_cast<std::size_t>(keep_); i < all.size(); ++i) {
    fs::remove(all[i], error);
  }
  return file;
}

// Removes partial files of a process that was killed while writing.
void CheckpointFolder::remove_leftovers() const {
  for (const fs::path& file : paths_in(path_)) {
    std::error_code ignored;
    if (file.extension() == ".part") fs::remove(file, ignored);
  }
}

std::vector<fs::path> CheckpointFolder::files() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::path& file : paths_in(path_)) {
    if (const auto steps = steps_of(file)) found.emplace_back(*steps, file);
  }
  std::sort(found.rbegin(), found.rend());
  return vector_of(found, [](const auto& checkpoint) { return checkpoint.second; });
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest(
    const std::function<void(const std::string& why)>& rejected) const {
  for (const fs::path& file : files()) {
    try {
      return Found{.file = file, .state = read_state(file)};
    } catch (const NewerVersion&) {
      throw;
    } catch (const Error& error) {
      rejected(error.what());
    }
  }
  return std::nullopt;
}

Checkpointer::Checkpointer(CheckpointFolder folder, CheckpointInterval interval,
                           std::function<void()> before_writing,
                           std::function<void(SteadyClock::time_point begin)> on_written)
    : folder_(std::move(folder)),
      interval_(interval),
      before_writing_(std::move(before_writing)),
      on_written_(std::move(on_written)) {
  if (interval_.count < 1) {
    throw_error("a checkpoint every {} {}: at least 1 is needed", interval_.count,
                choice_name(kCheckpointUnits, interval_.unit));
  }
}

void Checkpointer::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training), static_cast<void>(step);
  ++steps_;
}

void Checkpointer::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training), static_cast<void>(epoch);
  ++epochs_;
}

void Checkpointer::between_steps(Training& training) {
  if (held_) return;
  using Unit = CheckpointInterval::Unit;
  const std::int64_t passed =
      interval_.unit == Unit::steps ? steps_
      : interval_.unit == Unit::epochs
          ? epochs_
          : std::chrono::floor<std::chrono::seconds>(SteadyClock::now() - since_).count();
  if (passed >= interval_.count)
    static_cast<void>(write(training.result().steps, training.state()));
}

void Checkpointer::on_cut_short(Training& training) {
  if (held_) return;
  static_cast<void>(write(training.result().steps, training.state()));
  hold();
}

fs::path Checkpointer::write(std::int64_t steps, const State& state) {
  const SteadyClock::time_point begin = SteadyClock::now();
  if (before_writing_) before_writing_();
  fs::path file;
  {
    const std::lock_guard lock(writing_);
    file = folder_.write(steps, state);
  }
  steps_ = 0;
  epochs_ = 0;
  since_ = SteadyClock::now();
  if (on_written_) on_written_(begin);
  return file;
}

std::optional<fs::path> Checkpointer::keep(std::int64_t steps, const State& state) {
  const std::lock_guard lock(writing_);
  const std::vector<fs::path> all = folder_.files();
  if (!all.empty() && CheckpointFolder::steps_of(all.front()) >= steps) return std::nullopt;
  return folder_.write(steps, state);
}

}  // namespace rubato
