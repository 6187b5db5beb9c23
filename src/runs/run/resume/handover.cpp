#include "handover.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

#include "base/core/system/file.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

constexpr std::string_view kStatePart = "state";
constexpr std::string_view kRecordsPart = "records";
constexpr const char* kMetricsFile = "metrics.jsonl";

// Only these files are written at the request of another host.
bool is_record(const std::string& name) {
  return name == kMetricsFile || is_event_file_name(name);
}

}  // namespace

Handover hand_over(Run& run) {
  run.sync_records();
  Handover handover;
  handover.state = run.trainer().state();
  const std::filesystem::path& folder = run.location().path();
  handover.records.emplace(kMetricsFile, read_file(folder / kMetricsFile));
  for (const std::filesystem::path& file : event_files(folder)) {
    handover.records.emplace(file.filename().string(), read_file(file));
  }
  return handover;
}

std::string handover_bytes(Handover handover) {
  State records;
  for (auto& [name, bytes] : handover.records) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    records.put_array(name, {.type = ElementType::u8, .shape = {size}, .bytes = std::move(bytes)});
  }
  State all;
  all.put(kStatePart, std::move(handover.state));
  all.put(kRecordsPart, std::move(records));
  return state_bytes(all);
}

Handover parse_handover(std::string_view bytes) {
  const State all = parse_state(bytes, "the state of the other hosts");
  Handover handover;
  handover.state = all.part(kStatePart);
  const State records = all.part(kRecordsPart);
  for (const auto& [name, record] : records.arrays()) {
    if (!is_record(name)) {
      throw Error(fmt::format("another host sends a file '{}'; accepted: records of a run", name));
    }
    handover.records.emplace(name, record.bytes);
  }
  return handover;
}

}  // namespace rubato
