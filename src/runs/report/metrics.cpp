#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>

#include "base/core/system/file.hpp"
#include "base/core/text/or_null.hpp"
#include "base/state/sha256.hpp"
#include "record_json.hpp"
#include "report_schemas.hpp"

namespace rubato {

namespace {

constexpr std::string_view kBytes = "bytes";

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw OutputError(
      fmt::format("{}: cannot write: {}", path.string(), std::generic_category().message(errno)));
}

// The line of metrics.jsonl for a record, without its end.
template <class Record>
std::string line_of(const RecordSchema<Record>& schema, const Record& record) {
  return json_text(json_of(schema, record, {{"kind", schema.name}}));
}

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path path, bool keep) : path_(std::move(path)) {
  open(keep ? std::ios::app : std::ios::trunc);
}

void MetricsWriter::open(std::ios::openmode mode) {
  out_.close();
  out_.clear();
  out_.open(path_, std::ios::binary | mode);
  if (!out_) fail(path_);
}

void MetricsWriter::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  state.count(kBytes, bytes_);
  if (state.loading()) cut_off();
}

void MetricsWriter::cut_off() {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error || std::cmp_less(size, bytes_)) {
    throw Error(fmt::format(
        "{}: has {} bytes, less than the {} at the time of the checkpoint; lines were lost",
        path_.string(), error ? 0 : size, bytes_));
  }
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(bytes_), error);
  if (error) fail(path_);
  open(std::ios::app);
}

void MetricsWriter::flush() {
  // The size is read before and after the flush, which may take long.
  static_cast<void>(size_on_disk());
  flush_to_disk(path_);
  if (std::cmp_not_equal(size_on_disk(), bytes_)) {
    throw OutputError(fmt::format("{}: is no longer the file that was written to", path_.string()));
  }
}

std::string MetricsWriter::sha256() {
  flush();
  return Sha256::hex_of_file(path_);
}

std::uintmax_t MetricsWriter::size_on_disk() const {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error) throw OutputError(fmt::format("{}: has gone while it was written to", path_.string()));
  return size;
}

void MetricsWriter::on_fault(Training& training, const StepPlan& step,
                             std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training);
  for (const FaultRecord& fault : faults) {
    write_line(line_of(fault_schema(), {step.index, fault, cores_left}));
  }
}

void MetricsWriter::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  for (const MinibatchRecord& minibatch : step.minibatches) {
    write_line(line_of(minibatch_schema(), {step.plan.index, minibatch}));
  }
  write_line(line_of(step_schema(), step));
}

void MetricsWriter::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  write_line(line_of(epoch_schema(), epoch));
}

void MetricsWriter::write(const StepPlan& step, std::span<const TensorStatistics> tensors) {
  for (const TensorStatistics& tensor : tensors) {
    write_line(line_of(monitor_schema(), {step.index, tensor}));
  }
}

void MetricsWriter::write(const OwnMetrics& metrics) {
  write_line(line_of(own_schema(), metrics));
}

void MetricsWriter::write_line(const std::string& line) {
  out_ << line << '\n' << std::flush;
  if (!out_) fail(path_);
  bytes_ += static_cast<std::int64_t>(line.size()) + 1;
}

}  // namespace rubato
