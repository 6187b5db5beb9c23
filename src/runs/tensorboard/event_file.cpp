#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <rubato/runs/tensorboard.hpp>

#include "base/core/file.hpp"
#include "event_writer.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostWaiting = std::size_t{1} << 16;
constexpr double kLongestWait = 1;

[[noreturn]] void cannot_write(const fs::path& file, int error) {
  throw OutputError(
      fmt::format("{}: cannot write: {}", file.string(), std::generic_category().message(error)));
}

double seconds_since_1970() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

}  // namespace

class EventFile::Implementation {
 public:
  explicit Implementation(fs::path path)
      : path_(std::move(path)),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) cannot_write(path_, errno);
  }
  ~Implementation() {
    // A destructor cannot report an error.
    if (write_waiting() == 0) written_ += std::ssize(waiting_);
    close(descriptor_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  // Calls append(writer, buffer), which appends an event to the buffer.
  template <class Append>
  void write(const Append& append) {
    const double now = seconds_since_1970();
    writer_.set_wall_time(now);
    append(writer_, waiting_);
    // If the clock was set back, events must not be held back until it catches up.
    const bool late = now < flushed_at_ || now >= flushed_at_ + kLongestWait;
    if (late || waiting_.size() >= kMostWaiting) {
      flush();
      flushed_at_ = now;
    }
  }

  void flush() {
    const int error = write_waiting();
    if (error != 0) cannot_write(path_, error);
    written_ += std::ssize(waiting_);
    waiting_.clear();
  }

  void sync() {
    flush();
    // The file may be removed before the flush or, because that takes a while, during it.
    require_own();
    flush_to_disk(path_);
    // The name of a new file needs to be on the disk, too.
    if (!std::exchange(name_on_disk_, true)) flush_to_disk(parent_of(path_));
    require_own();
  }

  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] std::int64_t bytes() const { return written_ + std::ssize(waiting_); }

 private:
  // Writes all of the buffer or, if that fails, none of it. Returns errno, or 0.
  [[nodiscard]] int write_waiting() const {
    std::span<const std::byte> rest(waiting_);
    while (!rest.empty()) {
      const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        static_cast<void>(ftruncate(descriptor_, written_) == 0 &&
                          lseek(descriptor_, written_, SEEK_SET) == written_);
        return error;
      }
      rest = rest.subspan(static_cast<std::size_t>(written));
    }
    return 0;
  }

  void require_own() const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path_, error);
    if (error) {
      throw OutputError(fmt::format("{}: has gone while it was written to", path_.string()));
    }
    if (std::cmp_not_equal(size, written_)) {
      throw OutputError(
          fmt::format("{}: is no longer the file that was written to", path_.string()));
    }
  }

  fs::path path_;
  int descriptor_;
  EventWriter writer_;
  std::vector<std::byte> waiting_;
  std::int64_t written_ = 0;
  bool name_on_disk_ = false;
  // 0 means that the first event is written at once.
  double flushed_at_ = 0;
};

EventFile::EventFile(fs::path path)
    : implementation_(std::make_unique<Implementation>(std::move(path))) {
  implementation_->write([](EventWriter& to, auto& out) { to.write_version(out); });
}
EventFile::~EventFile() = default;

void EventFile::write_scalars(std::int64_t step, std::span<const Scalar> scalars) {
  implementation_->write([&](EventWriter& to, auto& out) { to.write_scalars(step, scalars, out); });
}
void EventFile::write_histogram(std::int64_t step, std::string_view tag,
                                const Histogram& histogram) {
  implementation_->write(
      [&](EventWriter& to, auto& out) { to.write_histogram(step, tag, histogram, out); });
}
void EventFile::write_restart(std::int64_t step) {
  implementation_->write([&](EventWriter& to, auto& out) { to.write_restart(step, out); });
}
void EventFile::write_hyperparameters(std::span<const Hyperparameter> hyperparameters) {
  implementation_->write(
      [&](EventWriter& to, auto& out) { to.write_hyperparameters(hyperparameters, out); });
}
void EventFile::write_end(bool success) {
  implementation_->write([&](EventWriter& to, auto& out) { to.write_end(success, out); });
}
void EventFile::write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                                 std::span<const std::string> metrics) {
  implementation_->write(
      [&](EventWriter& to, auto& out) { to.write_experiment(hyperparameters, metrics, out); });
}

void EventFile::flush() {
  implementation_->flush();
}
void EventFile::sync() {
  implementation_->sync();
}
const fs::path& EventFile::path() const {
  return implementation_->path();
}
std::int64_t EventFile::bytes() const {
  return implementation_->bytes();
}

}  // namespace rubato
