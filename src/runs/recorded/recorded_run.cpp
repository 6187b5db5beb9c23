#include "recorded_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/file.hpp"
#include "base/core/seconds.hpp"
#include "base/core/text/text.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/configuration_file.hpp"

namespace rubato {

namespace {

// Number of bytes that the part read so far is recognised by. Lines of metrics end with times in
// nanoseconds, so no two have the same last bytes.
constexpr std::size_t kKnownBy = 256;
constexpr std::size_t kChunk = 1 << 20;

// A file that is open for reading, unless it could not be opened.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file)
      : descriptor_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  // Returns fewer than `count` bytes at the end of the file.
  [[nodiscard]] std::string bytes(std::int64_t offset, std::size_t count,
                                  const std::filesystem::path& file) const {
    std::string bytes(count, '\0');
    const ssize_t got = pread(descriptor_, bytes.data(), count, offset);
    if (got < 0) fail(file);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  [[noreturn]] static void fail(const std::filesystem::path& file) {
    throw Error(
        fmt::format("{}: cannot read: {}", file.string(), std::generic_category().message(errno)));
  }

 private:
  int descriptor_;
};

}  // namespace

void GrowingLines::rewind() {
  bytes_ = 0;
  last_bytes_.clear();
  line_ = 0;
}

void GrowingLines::read(const std::function<void()>& begin_anew,
                        const std::function<void(std::string_view line)>& take) {
  const OpenFile file(file_);
  if (!file.is_open() && errno != ENOENT) OpenFile::fail(file_);
  const auto known = static_cast<std::int64_t>(last_bytes_.size());
  if (bytes_ > 0 &&
      (!file.is_open() || file.bytes(bytes_ - known, last_bytes_.size(), file_) != last_bytes_)) {
    rewind();
    begin_anew();
  }
  if (!file.is_open()) return;
  std::string rest;
  std::int64_t offset = bytes_;
  while (true) {
    const std::string chunk = file.bytes(offset, kChunk, file_);
    if (chunk.empty()) return;
    offset += static_cast<std::int64_t>(chunk.size());
    rest += chunk;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      ++line_;
      take(std::string_view(rest).substr(begin, end - begin));
    }
    if (begin == 0) continue;
    bytes_ += static_cast<std::int64_t>(begin);
    last_bytes_ = (last_bytes_ + rest.substr(0, begin));
    last_bytes_.erase(0, last_bytes_.size() - std::min(last_bytes_.size(), kKnownBy));
    rest.erase(0, begin);
  }
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Seconds without news after which a run is shown as silent.
constexpr double kSilence = 5;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// NaN if the value is null, which stands for a number that is not finite; empty if it is missing.
std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  return found->is_number() ? found->get<double>() : kNoNumber;
}

std::optional<double> number_at(const Json& json, const char* object, const char* key) {
  const auto found = json.find(object);
  return found == json.end() ? std::nullopt : number_at(*found, key);
}

// Number of cores that have minibatches in a step.
std::int64_t busy_cores_of(const Json& step, std::int64_t cores) {
  const auto substeps = step.find("substeps");
  if (substeps == step.end() || !substeps->is_array()) return cores;
  return std::ranges::count_if(*substeps, [](const Json& count) { return count != 0; });
}

}  // namespace

RecordedRun::RecordedRun(fs::path folder)
    : folder_(std::move(folder)), lines_(folder_ / "metrics.jsonl") {}

void RecordedRun::read_configuration_file() {
  // Only the options for the length of the run are read, because some others load the files that
  // they name.
  constexpr std::array<std::string_view, 5> kLengths{"epochs", "iterations", "samples", "hours",
                                                     "money"};
  const fs::path file = folder_ / "config.toml";
  if (!config_.has_changed(file) || !config_.written) return;
  RunConfiguration lengths;
  for (const TomlEntry& entry : parse_toml(configuration_text(file), file.string())) {
    if (std::ranges::find(kLengths, entry.key) != kLengths.end()) set_option(lengths, entry);
  }
  view_.epochs = lengths.epochs;
  budget_ = budget_of(lengths);
}

bool RecordedRun::WholeFile::has_changed(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  const auto now = error ? std::nullopt : std::optional(time);
  return std::exchange(written, now) != now;
}

void RecordedRun::begin_anew() {
  const std::int64_t epochs = view_.epochs;
  view_ = {};
  view_.epochs = epochs;
  spent_ = {};
  whole_epochs_ = samples_of_whole_ = 0;
  seconds_ = recent_samples_ = recent_seconds_ = 0;
}

void RecordedRun::update() {
  read_configuration_file();
  try {
    read_metrics();
  } catch (const Error&) {
    // A run that resumed from a checkpoint at this very moment has cut the file while it was read.
    lines_.rewind();
    begin_anew();
    read_metrics();
  }
  read_summary();
  conclude();
}

void RecordedRun::read_metrics() {
  lines_.read([this] { begin_anew(); }, [this](std::string_view line) { take_line(line); });
}

void RecordedRun::take_line(std::string_view text) {
  try {
    const Json line = Json::parse(text);
    const std::string kind = line.at("kind");
    if (kind == "step") take_step(line);
    if (kind == "epoch") take_epoch(line);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}:{}: not a record of a run ({})", lines_.file().string(),
                            lines_.line(), error.what()));
  }
}

void RecordedRun::take_step(const Json& line) {
  constexpr double kKept = 0.9;
  view_.step = line.at("step").get<std::int64_t>() + 1;
  view_.epoch = line.at("epoch").get<std::int64_t>() + 1;
  view_.batch = line.at("batch");
  view_.samples += view_.batch;
  const auto at = static_cast<double>(view_.samples);
  view_.loss = number_at(line, "loss").value_or(kNoNumber);
  view_.losses.add(at, view_.loss);
  view_.batches.add(at, static_cast<double>(view_.batch));
  view_.cores = line.at("cores");
  view_.busy = busy_cores_of(line, view_.cores);
  view_.most_cores = std::max(view_.most_cores, view_.cores);
  view_.learning_rate = number_at(line, "lr").value_or(kNoNumber);
  view_.gain = number_at(line, "gain").value_or(kNoNumber);
  view_.hours = number_at(line, "clock", "hours");
  view_.money = number_at(line, "clock", "money");
  const double seconds = number_at(line, "seconds", "wall").value_or(0);
  seconds_ += seconds;
  recent_samples_ = kKept * recent_samples_ + static_cast<double>(view_.batch);
  recent_seconds_ = kKept * recent_seconds_ + seconds;
  spent_.iterations = number_at(line, "iterations").value_or(0);
  spent_.samples = view_.samples;
  if (!view_.hours) return;
  spent_.time.emplace();
  spent_.time->seconds = *view_.hours * kSecondsOfHour;
  spent_.time->money = view_.money.value_or(0);
}

void RecordedRun::take_epoch(const Json& line) {
  const std::optional<double> accuracy = number_at(line, "test_accuracy");
  const std::optional<double> loss = number_at(line, "test_loss");
  if (accuracy || loss) {
    view_.test_is_accuracy = accuracy.has_value();
    view_.test = accuracy ? accuracy : loss;
    view_.tests.add(static_cast<double>(view_.samples), *view_.test);
  }
  seconds_ += number_at(line, "seconds", "test").value_or(0);
  if (!line.value("whole", true)) return;
  whole_epochs_ = line.at("epoch").get<std::int64_t>() + 1;
  samples_of_whole_ = view_.samples;
  view_.epoch = std::min(whole_epochs_ + 1, view_.epochs);
}

void RecordedRun::read_summary() {
  const fs::path file = folder_ / "summary.json";
  if (!summary_.has_changed(file)) return;
  view_.phase = RunView::Phase::training;
  view_.stopped.clear();
  if (!summary_.written) return;
  try {
    const Json summary = Json::parse(read_file(file));
    view_.phase = RunView::Phase::ended;
    view_.phase_seconds = number_at(summary, "wall_seconds").value_or(0);
    const auto stopped = summary.find("stopped");
    if (stopped == summary.end() || !stopped->is_string()) return;
    const std::string reason = printable(stopped->get<std::string>());
    view_.stopped = reason.substr(0, reason.find('\n'));
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: not a summary of a run ({})", file.string(), error.what()));
  }
}

void RecordedRun::conclude() {
  if (recent_seconds_ > 0) view_.rate = recent_samples_ / recent_seconds_;
  view_.done.reset();
  view_.seconds_left.reset();
  if (whole_epochs_ > 0) {
    const double each = static_cast<double>(samples_of_whole_) / static_cast<double>(whole_epochs_);
    const double all = each * static_cast<double>(view_.epochs);
    view_.done = all > 0 ? std::min(1.0, static_cast<double>(view_.samples) / all) : 1;
  }
  if (budget_ != Budget{}) {
    view_.done = std::clamp(share_spent(budget_, spent_), view_.done.value_or(0), 1.0);
  }
  if (view_.done && *view_.done > 0) {
    view_.seconds_left = seconds_ * (1 - *view_.done) / *view_.done;
  }
  if (has_ended()) return;
  std::error_code error;
  const auto written = fs::last_write_time(lines_.file(), error);
  const std::chrono::duration<double> silence = fs::file_time_type::clock::now() - written;
  const bool silent = !error && silence.count() > kSilence;
  view_.phase = silent ? RunView::Phase::silent : RunView::Phase::training;
  view_.phase_seconds = silent ? silence.count() : 0;
}

}  // namespace rubato
