// An event file is a sequence of records in TensorFlow's record format (TFRecord), each an Event of
// events.proto with checksums around it. append() serialises an event directly into the buffer,
// where it leaves space for them, and flush() writes whole records; if that fails, the file is
// truncated to the records before. The messages are members that are filled again for each event,
// so the caller fills summary(), session_log() or hparams() and then calls append() or
// append_hparams().

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <rubato/runs/tensorboard.hpp>

#include "base/core/file.hpp"
#include "tensorboard/events.pb.h"

namespace rubato {

namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::size_t kMostWaiting = std::size_t{1} << 16;
constexpr double kLongestWait = 1;

constexpr const char* kVersion = "brain.Event:2";
constexpr const char* kHparamsPlugin = "hparams";
// TensorBoard accepts no other version.
constexpr int kHparamsVersion = 0;
constexpr std::string_view kExperiment = "_hparams_/experiment";
constexpr std::string_view kSessionStart = "_hparams_/session_start_info";
constexpr std::string_view kSessionEnd = "_hparams_/session_end_info";

// A header has the length of the record in 8 bytes and their checksum, a footer the checksum of the
// record.
constexpr std::size_t kHeader = 12;
constexpr std::size_t kFooter = 4;
constexpr int kRotation = 15;
constexpr std::uint32_t kMask = 0xa282ead8;

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  // ISA-L only reads, although its interface lacks the const, and counts in int. It leaves the
  // inversions at both ends to its caller.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::uint32_t crc = 0xffffffff;
  for (std::size_t left = bytes.size(); left > 0;) {
    const std::size_t part = left < kMost ? left : kMost;
    crc = crc32_iscsi(data, static_cast<int>(part), crc);
    data += part;
    left -= part;
  }
  return ~crc;
}

// The CRC-32C of the bytes as the format stores it: rotated right by 15 bits, plus a constant.
// Without that, a CRC of data that contain CRCs would detect fewer errors.
std::uint32_t masked_checksum(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), kRotation) + kMask;
}

// Writes the header and the footer around a record that lies in `frame`, which has space for both.
void close_frame(std::span<std::byte> frame) {
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(frame.data() + at, &value, sizeof(value));
  };
  const std::uint64_t length = frame.size() - kHeader - kFooter;
  put(0, length);
  put(sizeof(length), masked_checksum(frame.first(sizeof(length))));
  put(kHeader + length, masked_checksum(frame.subspan(kHeader, length)));
}

void set(events::HParam& to, const Hyperparameter& from) {
  if (const bool* flag = std::get_if<bool>(&from.value)) {
    to.set_flag(*flag);
  } else if (const double* number = std::get_if<double>(&from.value)) {
    to.set_number(*number);
  } else {
    to.set_text(std::get<std::string>(from.value));
  }
}

events::HParamInfo::Type type_of(HyperparameterType type) {
  switch (type) {
    case HyperparameterType::flag:
      return events::HParamInfo::BOOL;
    case HyperparameterType::number:
      return events::HParamInfo::FLOAT64;
    case HyperparameterType::text:
      break;
  }
  return events::HParamInfo::STRING;
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
    if (descriptor_ < 0) cannot_write(path_);
    event_.set_file_version(kVersion);
    append(0);
  }
  ~Implementation() {
    // A destructor cannot report an error.
    if (write_waiting() == 0) written_ += std::ssize(waiting_);
    close(descriptor_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  // The event that append() writes, as an empty summary or as a restart.
  events::Summary& summary() {
    event_.mutable_summary()->clear_value();
    return *event_.mutable_summary();
  }
  events::SessionLog& session_log() { return *event_.mutable_session_log(); }
  // An empty message for append_hparams().
  events::HParams& hparams() {
    hparams_.Clear();
    return hparams_;
  }

  void append(std::int64_t step, double now = seconds_since_1970()) {
    event_.set_wall_time(now);
    event_.set_step(step);
    const std::size_t size = event_.ByteSizeLong();
    const std::size_t begin = waiting_.size();
    waiting_.resize(begin + kHeader + size + kFooter);
    const std::span<std::byte> frame = std::span(waiting_).subspan(begin);
    event_.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(frame.data() + kHeader));
    close_frame(frame);
    // If the clock was set back, events must not be held back until it catches up.
    const bool late = now < flushed_at_ || now >= flushed_at_ + kLongestWait;
    if (late || waiting_.size() >= kMostWaiting) {
      flush();
      flushed_at_ = now;
    }
  }

  void append_hparams(std::string_view tag, double now = seconds_since_1970()) {
    hparams_.set_version(kHparamsVersion);
    events::Summary::Value& value = *summary().add_value();
    value.set_tag(tag.data(), tag.size());
    events::Metadata::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
    plugin.set_plugin_name(kHparamsPlugin);
    hparams_.SerializeToString(plugin.mutable_content());
    append(0, now);
  }

  void flush() {
    const int error = write_waiting();
    if (error != 0) cannot_write(path_, {error, std::generic_category()});
    written_ += std::ssize(waiting_);
    waiting_.clear();
  }

  void sync() {
    flush();
    flush_own_file(path_, written_);
    // The name of a new file needs to be on the disk, too.
    if (!std::exchange(name_on_disk_, true)) flush_to_disk(parent_of(path_));
  }

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

  fs::path path_;
  int descriptor_;
  // These are filled again for each event; their strings and lists keep their memory.
  events::Event event_;
  events::HParams hparams_;
  std::vector<std::byte> waiting_;
  std::int64_t written_ = 0;
  bool name_on_disk_ = false;
  // 0 means that the first event is written at once.
  double flushed_at_ = 0;
};

EventFile::EventFile(fs::path path)
    : implementation_(std::make_unique<Implementation>(std::move(path))) {}
EventFile::~EventFile() = default;

void EventFile::write_scalars(std::int64_t step, std::span<const Scalar> scalars) {
  events::Summary& summary = implementation_->summary();
  for (const Scalar& scalar : scalars) {
    events::Summary::Value& value = *summary.add_value();
    value.set_tag(scalar.tag.data(), scalar.tag.size());
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  implementation_->append(step);
}

void EventFile::write_histogram(std::int64_t step, std::string_view tag,
                                const Histogram& histogram) {
  events::Summary::Value& value = *implementation_->summary().add_value();
  value.set_tag(tag.data(), tag.size());
  events::Histogram& histo = *value.mutable_histo();
  histo.set_min(histogram.min);
  histo.set_max(histogram.max);
  histo.set_num(static_cast<double>(histogram.count));
  histo.set_sum(histogram.sum);
  histo.set_sum_squares(histogram.sum_of_squares);
  histo.mutable_bucket_limit()->Assign(histogram.limits.begin(), histogram.limits.end());
  histo.mutable_bucket()->Assign(histogram.counts.begin(), histogram.counts.end());
  implementation_->append(step);
}

void EventFile::write_restart(std::int64_t step) {
  implementation_->session_log().set_status(events::SessionLog::START);
  implementation_->append(step);
}

void EventFile::write_hyperparameters(std::span<const Hyperparameter> hyperparameters) {
  const double now = seconds_since_1970();
  events::SessionStart& start = *implementation_->hparams().mutable_session_start_info();
  start.set_start_time_secs(now);
  for (const Hyperparameter& hyperparameter : hyperparameters) {
    events::SessionStart::Entry& entry = *start.add_hparams();
    entry.set_key(hyperparameter.name);
    set(*entry.mutable_value(), hyperparameter);
  }
  implementation_->append_hparams(kSessionStart, now);
}

void EventFile::write_end(bool success) {
  const double now = seconds_since_1970();
  events::SessionEnd& end = *implementation_->hparams().mutable_session_end_info();
  end.set_status(success ? events::SessionEnd::SUCCESS : events::SessionEnd::FAILURE);
  end.set_end_time_secs(now);
  implementation_->append_hparams(kSessionEnd, now);
}

void EventFile::write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                                 std::span<const std::string> metrics) {
  events::Experiment& experiment = *implementation_->hparams().mutable_experiment();
  for (const HyperparameterColumn& column : hyperparameters) {
    events::HParamInfo& info = *experiment.add_hparam_infos();
    info.set_name(column.name);
    info.set_type(type_of(column.type));
  }
  for (const std::string& tag : metrics) {
    experiment.add_metric_infos()->mutable_name()->set_tag(tag);
  }
  implementation_->append_hparams(kExperiment);
}

void EventFile::flush() {
  implementation_->flush();
}
void EventFile::sync() {
  implementation_->sync();
}
std::int64_t EventFile::bytes() const {
  return implementation_->bytes();
}

}  // namespace rubato
