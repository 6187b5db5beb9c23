#include "tensorboard/event_folder.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>

#include "core/file.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// TensorBoard reads what has "tfevents" in its name; the seconds are others' custom, too.
constexpr std::string_view kEventsPrefix = "events.out.tfevents.";
constexpr std::string_view kEventsSuffix = ".rubato";
constexpr std::size_t kStampDigits = 10;

constexpr std::string_view kFiles = "files";
constexpr std::string_view kEventBytes = "bytes";

bool is_own(const std::string& name) {
  return name.starts_with(kEventsPrefix) && name.ends_with(kEventsSuffix);
}

std::string stamp_of(const std::string& name) {
  return name.substr(kEventsPrefix.size(), kStampDigits);
}

std::string stamp_now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{:0{}}", std::chrono::duration_cast<std::chrono::seconds>(time).count(),
                     kStampDigits);
}

[[noreturn]] void failed_at(const fs::path& path, const std::error_code& error) {
  throw OutputError(fmt::format("{}: cannot write: {}", path.string(), error.message()));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

EventFolder::EventFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) failed_at(path_, error);
}

fs::path EventFolder::next() {
  std::string stamp = stamp_now();
  // The clock may have been set back.
  if (!names_.empty()) stamp = std::max(stamp, stamp_of(names_.back()));
  names_.push_back(
      fmt::format("{}{}.{:04}{}", kEventsPrefix, stamp, names_.size(), kEventsSuffix));
  return path_ / names_.back();
}

void EventFolder::save(State& state, std::int64_t bytes) const {
  state.put_text(kFiles, fmt::to_string(fmt::join(names_, "\n")));
  state.put(kEventBytes, bytes);
}

void EventFolder::load(const State& state) {
  std::vector<std::string> names = lines_of(state.text(kFiles));
  const std::int64_t bytes = state.count(kEventBytes);
  std::error_code error;
  for (const std::string& name : names) {
    if (is_own(name) && fs::is_regular_file(path_ / name, error)) continue;
    throw Error(fmt::format("{}: is not there, and the checkpoint has seen it; events were lost",
                            (path_ / name).string()));
  }
  if (!names.empty()) {
    const fs::path last = path_ / names.back();
    const std::uintmax_t size = fs::file_size(last, error);
    if (error || std::cmp_less(size, bytes)) {
      throw Error(fmt::format(
          "{}: has {} bytes, less than the {} that the checkpoint has seen; events were lost",
          last.string(), error ? 0 : size, bytes));
    }
    fs::resize_file(last, static_cast<std::uintmax_t>(bytes), error);
    if (error) failed_at(last, error);
  }
  remove_if_not_among(names);
  names_ = std::move(names);
}

void EventFolder::remove_all() {
  remove_if_not_among({});
  names_.clear();
}

void EventFolder::remove_if_not_among(const std::vector<std::string>& names) const {
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (is_own(name) && !known) others.push_back(it->path());
  }
  for (const fs::path& other : others) {
    if (!error) fs::remove(other, error);
  }
  if (error) failed_at(path_, error);
}

}  // namespace rubato
