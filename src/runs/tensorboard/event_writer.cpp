#include "event_writer.hpp"

#include <bit>
#include <cstring>
#include <string>
#include <variant>

#include <isa-l/crc.h>

#include <rubato/base/error.hpp>

#include "tensorboard/events.pb.h"

namespace rubato {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

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

}  // namespace

std::uint32_t masked_checksum(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), kRotation) + kMask;
}

void close_frame(std::span<std::byte> frame) {
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(frame.data() + at, &value, sizeof(value));
  };
  const std::uint64_t length = frame.size() - RecordFrame::kHeader - RecordFrame::kFooter;
  put(0, length);
  put(sizeof(length), masked_checksum(frame.first(sizeof(length))));
  put(RecordFrame::kHeader + length, masked_checksum(frame.subspan(RecordFrame::kHeader, length)));
}

namespace {

constexpr const char* kVersion = "brain.Event:2";
constexpr const char* kHparamsPlugin = "hparams";
// TensorBoard accepts no other version.
constexpr int kHparamsVersion = 0;
constexpr std::string_view kExperiment = "_hparams_/experiment";
constexpr std::string_view kSessionStart = "_hparams_/session_start_info";
constexpr std::string_view kSessionEnd = "_hparams_/session_end_info";

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

}  // namespace

struct EventWriter::Messages {
  // These are filled again for each event; their strings and lists keep their memory.
  events::Event event;
  events::HParams hparams;
};

EventWriter::EventWriter() : messages_(std::make_unique<Messages>()) {}
EventWriter::~EventWriter() = default;

void EventWriter::append(std::int64_t step, std::vector<std::byte>& out) {
  events::Event& event = messages_->event;
  event.set_wall_time(wall_time_);
  event.set_step(step);
  const std::size_t size = event.ByteSizeLong();
  const std::size_t begin = out.size();
  out.resize(begin + RecordFrame::kHeader + size + RecordFrame::kFooter);
  const std::span<std::byte> frame = std::span(out).subspan(begin);
  event.SerializeWithCachedSizesToArray(
      reinterpret_cast<std::uint8_t*>(frame.data() + RecordFrame::kHeader));
  close_frame(frame);
}

void EventWriter::write_version(std::vector<std::byte>& out) {
  messages_->event.set_file_version(kVersion);
  append(0, out);
}

void EventWriter::write_scalars(std::int64_t step, std::span<const Scalar> scalars,
                                std::vector<std::byte>& out) {
  events::Summary& summary = *messages_->event.mutable_summary();
  summary.clear_value();
  for (const Scalar& scalar : scalars) {
    events::Summary::Value& value = *summary.add_value();
    value.set_tag(scalar.tag.data(), scalar.tag.size());
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  append(step, out);
}

void EventWriter::write_histogram(std::int64_t step, std::string_view tag,
                                  const Histogram& histogram, std::vector<std::byte>& out) {
  events::Summary& summary = *messages_->event.mutable_summary();
  summary.clear_value();
  events::Summary::Value& value = *summary.add_value();
  value.set_tag(tag.data(), tag.size());
  events::Histogram& histo = *value.mutable_histo();
  histo.set_min(histogram.min);
  histo.set_max(histogram.max);
  histo.set_num(static_cast<double>(histogram.count));
  histo.set_sum(histogram.sum);
  histo.set_sum_squares(histogram.sum_of_squares);
  histo.mutable_bucket_limit()->Assign(histogram.limits.begin(), histogram.limits.end());
  histo.mutable_bucket()->Assign(histogram.counts.begin(), histogram.counts.end());
  append(step, out);
}

void EventWriter::write_restart(std::int64_t step, std::vector<std::byte>& out) {
  messages_->event.mutable_session_log()->set_status(events::SessionLog::START);
  append(step, out);
}

void EventWriter::write_hyperparameters(std::span<const Hyperparameter> hyperparameters,
                                        std::vector<std::byte>& out) {
  messages_->hparams.Clear();
  events::SessionStart& start = *messages_->hparams.mutable_session_start_info();
  start.set_start_time_secs(wall_time_);
  for (const Hyperparameter& hyperparameter : hyperparameters) {
    events::SessionStart::Entry& entry = *start.add_hparams();
    entry.set_key(hyperparameter.name);
    set(*entry.mutable_value(), hyperparameter);
  }
  append_hparams(kSessionStart, out);
}

void EventWriter::write_end(bool success, std::vector<std::byte>& out) {
  messages_->hparams.Clear();
  events::SessionEnd& end = *messages_->hparams.mutable_session_end_info();
  end.set_status(success ? events::SessionEnd::SUCCESS : events::SessionEnd::FAILURE);
  end.set_end_time_secs(wall_time_);
  append_hparams(kSessionEnd, out);
}

void EventWriter::write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                                   std::span<const std::string> metrics,
                                   std::vector<std::byte>& out) {
  messages_->hparams.Clear();
  events::Experiment& experiment = *messages_->hparams.mutable_experiment();
  for (const HyperparameterColumn& column : hyperparameters) {
    events::HParamInfo& info = *experiment.add_hparam_infos();
    info.set_name(column.name);
    info.set_type(type_of(column.type));
  }
  for (const std::string& tag : metrics) {
    experiment.add_metric_infos()->mutable_name()->set_tag(tag);
  }
  append_hparams(kExperiment, out);
}

void EventWriter::append_hparams(std::string_view tag, std::vector<std::byte>& out) {
  messages_->hparams.set_version(kHparamsVersion);
  events::Summary& summary = *messages_->event.mutable_summary();
  summary.clear_value();
  events::Summary::Value& value = *summary.add_value();
  value.set_tag(tag.data(), tag.size());
  events::Metadata::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name(kHparamsPlugin);
  messages_->hparams.SerializeToString(plugin.mutable_content());
  append(0, out);
}

}  // namespace rubato
