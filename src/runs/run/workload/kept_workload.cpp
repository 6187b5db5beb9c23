// A workload depends on the options of one group of the table and on the files that these name.
// look() finds the files through RunOption::map_path, which every option that names a file has; a
// folder stands for all that is in it. The time of the last change of a file (st_ctim) cannot be
// set by users, so it also tells a file from one that was copied over it with its old time.

#include "kept_workload.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/data_source.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

std::vector<const RunOption*> workload_options() {
  const std::string& group = run_option("model").group;
  const auto options = run_options();
  return pointers_to(options, [&](const RunOption& option) {
    return option.group == group || option.name == "kernels";
  });
}

// The files and folders that the options of a workload name.
std::vector<fs::path> named_files(const RunConfiguration& run) {
  // A known data set in the user's cache has a path that its text lacks.
  std::vector<fs::path> files;
  if (!run.data->path.empty()) files.push_back(run.data->path);
  for (const RunOption* const option : workload_options()) {
    if (option->map_path == nullptr) continue;
    static_cast<void>(option->map_path(option->text(run).value_or(""), [&](const fs::path& file) {
      files.push_back(file);
      return file;
    }));
  }
  return files;
}

// Nanoseconds since 1970.
std::int64_t in_nanoseconds(const timespec& time) {
  constexpr std::int64_t kOfSecond = 1'000'000'000;
  return time.tv_sec * kOfSecond + time.tv_nsec;
}

// Adds the identity of a file to `sha`, and returns the time of its last change; empty if it cannot
// be seen.
std::optional<std::int64_t> add_identity(Sha256& sha, const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return std::nullopt;
  const std::int64_t written = in_nanoseconds(status.st_mtim);
  const std::int64_t changed = in_nanoseconds(status.st_ctim);
  sha.add(fmt::format("{} {} {} {} {} {}\n", status.st_dev, status.st_ino, status.st_size, written,
                      changed, file.string()));
  return std::max(written, changed);
}

}  // namespace

std::string workload_text(const RunConfiguration& run) {
  std::string text;
  if (!run.plugin->empty()) return text;
  for (const RunOption* const option : workload_options()) {
    const auto value = option->text(run);
    if (value) text += fmt::format("{}={}\n", option->name, *value);
  }
  return text;
}

KeptWorkload::KeptWorkload(const RunConfiguration& configuration, LoadWorkload load,
                           std::chrono::nanoseconds settling)
    : configuration_(configuration),
      load_(std::move(load)),
      settling_(settling),
      text_(workload_text(configuration)) {}

void KeptWorkload::load() {
  // The memory of the old one is needed for the new one.
  workload_.reset();
  files_ = look();
  if (!files_.are_settled || text_.empty()) return;
  try {
    auto workload = load_(configuration_);
    workload->complete();
    // If a file was changed meanwhile, is_current() says so.
    workload_ = std::move(workload);
  } catch (...) {
    // Each run loads it itself, and says why it cannot.
  }
}

bool KeptWorkload::is_current() const {
  const Files now = look();
  if (!files_.are_settled && !now.are_settled) return true;
  return files_.are_settled && now.identity == files_.identity;
}

bool KeptWorkload::is_for(const RunConfiguration& run) const {
  return workload_text(run) == text_;
}

std::shared_ptr<const Workload> KeptWorkload::workload_of(const RunConfiguration& run) const {
  if (!workload_ || !is_for(run)) return load_(run);
  workload_->require_suits(run);
  return workload_;
}

KeptWorkload::Files KeptWorkload::look() const {
  Sha256 sha;
  bool is_seen = true;
  std::int64_t last = 0;
  const auto add = [&](const fs::path& file) {
    const auto changed = add_identity(sha, file);
    is_seen = is_seen && changed;
    last = std::max(last, changed.value_or(0));
  };
  for (const fs::path& file : named_files(configuration_)) {
    add(file);
    std::error_code error;
    if (!fs::is_directory(file, error)) continue;
    constexpr auto kFollow = fs::directory_options::follow_directory_symlink;
    fs::recursive_directory_iterator it(file, kFollow, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
      add(it->path());
    }
    is_seen = is_seen && !error;
  }
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return {.identity = sha.hex(),
          .are_settled = is_seen && in_nanoseconds(now) - last >= settling_.count()};
}

}  // namespace rubato
