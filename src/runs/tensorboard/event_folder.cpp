#include "event_folder.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// TensorBoard reads files whose names contain "tfevents"; the time in seconds comes next by custom.
constexpr std::string_view kEventsPrefix = "events.out.tfevents.";
constexpr std::string_view kEventsSuffix = ".rubato";
constexpr std::size_t kStampDigits = 10;

constexpr std::string_view kFiles = "files";
constexpr std::string_view kEventBytes = "bytes";

std::string stamp_of(const std::string& name) {
  return name.substr(kEventsPrefix.size(), kStampDigits);
}

std::string stamp_now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{:0{}}", std::chrono::duration_cast<std::chrono::seconds>(time).count(),
                     kStampDigits);
}

constexpr std::string_view kWayOn =
    "accepted: the file as it was, or continuing without TensorBoard's files (--tensorboard=false)";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns the files sorted by name. Sets `error` if the folder cannot be read.
std::vector<fs::path> own_files(const fs::path& folder, std::error_code& error) {
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_event_file_name(it->path().filename().string())) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_event_file_name(std::string_view name) {
  return name.starts_with(kEventsPrefix) && name.ends_with(kEventsSuffix) &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::error_code ignored;
  return own_files(folder, ignored);
}

EventFolder::EventFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) cannot_write(path_, error);
}

fs::path EventFolder::next() {
  std::string stamp = stamp_now();
  // The folder also holds files that no state names if the run continued without TensorBoard
  // meanwhile.
  const std::vector<fs::path> files = event_files(path_);
  // The clock may have been set back.
  if (!files.empty()) stamp = std::max(stamp, stamp_of(files.back().filename().string()));
  std::string name;
  for (std::size_t number = files.size(); name.empty() || fs::exists(path_ / name); ++number) {
    name = fmt::format("{}{}.{:04}{}", kEventsPrefix, stamp, number, kEventsSuffix);
  }
  names_.push_back(std::move(name));
  return path_ / names_.back();
}

void EventFolder::visit_state(StateVisitor& state, std::int64_t bytes) {
  std::string names = fmt::to_string(fmt::join(names_, "\n"));
  state.text(kFiles, names);
  state.count(kEventBytes, bytes);
  if (!state.loading()) return;
  names_ = lines_of(names);
  bytes_ = bytes;
  require_files();
}

void EventFolder::require_files() const {
  std::error_code error;
  for (const std::string& name : names_) {
    if (is_event_file_name(name) && fs::is_regular_file(path_ / name, error)) continue;
    throw_error("{}: is missing, and was there when the checkpoint was written\n{}",
                (path_ / name).string(), kWayOn);
  }
  if (names_.empty()) return;
  const fs::path last = path_ / names_.back();
  const std::uintmax_t size = fs::file_size(last, error);
  if (error || std::cmp_less(size, bytes_)) {
    throw_error("{}: has {} bytes, and had {} when the checkpoint was written\n{}", last.string(),
                error ? 0 : size, bytes_, kWayOn);
  }
}

void EventFolder::go_back() {
  if (!names_.empty()) {
    const fs::path last = path_ / names_.back();
    std::error_code error;
    fs::resize_file(last, static_cast<std::uintmax_t>(bytes_), error);
    if (error) cannot_write(last, error);
  }
  remove_if_not_among(names_);
}

void EventFolder::remove_all() {
  remove_if_not_among({});
  names_.clear();
}

void EventFolder::remove_if_not_among(const std::vector<std::string>& names) const {
  std::error_code error;
  for (const fs::path& file : own_files(path_, error)) {
    const bool known = std::find(names.begin(), names.end(), file.filename()) != names.end();
    if (!known && !error) fs::remove(file, error);
  }
  if (error) cannot_write(path_, error);
}

}  // namespace rubato
