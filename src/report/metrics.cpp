#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/report/metrics.hpp>

#include "core/file.hpp"
#include "report/clock_json.hpp"
#include "report/record_numbers.hpp"
#include "state/sha256.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBytes = "bytes";

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw OutputError(
      fmt::format("{}: cannot write: {}", path.string(), std::generic_category().message(errno)));
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
        "{}: has {} bytes, less than the {} that the checkpoint has seen; lines were lost",
        path_.string(), error ? 0 : size, bytes_));
  }
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(bytes_), error);
  if (error) fail(path_);
  open(std::ios::app);
}

void MetricsWriter::flush() {
  // Both before and after the flushing, which takes its time.
  static_cast<void>(size_on_disk());
  flush_to_disk(path_);
  if (std::cmp_not_equal(size_on_disk(), bytes_)) {
    throw OutputError(
        fmt::format("{}: is not the file that was written to any more", path_.string()));
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
    write_line(Json{{"kind", "fault"},
                    {"step", step.index.value()},
                    {"core", fault.core.value()},
                    {"substep", fault.substep},
                    {"cores_left", cores_left}}
                   .dump());
  }
}

void MetricsWriter::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  write_minibatches(step);
  Json line{{"kind", "step"},
            {"step", step.plan.index.value()},
            {"epoch", step.epoch.value()},
            {"batch", step.plan.batch_size},
            {"cores", step.plan.cores},
            {"scale", step.scale},
            {"lr", step.learning_rate},
            {"gain", step.gain},
            {"iterations", step.iterations},
            {"loss", step.loss}};
  if (!step.applied) line["applied"] = false;
  each_measured_number(step, [&](std::string_view name, const std::optional<double>& value) {
    if (value) line[std::string(name)] = *value;
  });
  if (step.skipped) line["skipped"] = true;
  if (step.time) line["clock"] = clock_json(*step.time);
  for (const NamedNumber& input : step.decision_inputs) line["decision"][input.name] = input.value;
  line["substeps"] = substeps_of(step);
  each_number(step.seconds, [&](std::string_view name, double seconds) {
    line["seconds"][std::string(name)] = seconds;
  });
  write_line(line.dump());
}

void MetricsWriter::write_minibatches(const StepRecord& step) {
  for (const MinibatchRecord& minibatch : step.minibatches) {
    write_line(Json{{"kind", "minibatch"},
                    {"step", step.plan.index.value()},
                    {"minibatch", minibatch.minibatch.value()},
                    {"core", minibatch.core.value()},
                    {"substep", minibatch.substep},
                    {"loss", minibatch.loss},
                    {"gradient_norm", minibatch.gradient_norm}}
                   .dump());
  }
}

void MetricsWriter::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  Json line{{"kind", "epoch"},
            {"epoch", epoch.epoch.value()},
            {"steps", epoch.steps},
            {"samples", epoch.samples},
            {"train_loss", epoch.train_loss}};
  if (!epoch.whole) line["whole"] = false;
  if (epoch.test) {
    each_number(*epoch.test, [&](std::string_view name, const std::optional<double>& value) {
      if (value) line[fmt::format("test_{}", name)] = *value;
    });
  }
  for (const MetricValue& metric : epoch.metrics) line["metrics"][metric.name] = metric.value;
  if (epoch.time) line["clock"] = clock_json(*epoch.time);
  line["seconds"] = {{"train", epoch.train_seconds}, {"test", epoch.test_seconds}};
  write_line(line.dump());
}

void MetricsWriter::write(const StepPlan& step, std::span<const TensorStatistics> tensors) {
  for (const TensorStatistics& tensor : tensors) {
    write_line(Json{{"kind", "monitor"},
                    {"step", step.index.value()},
                    {"tensor", tensor.name},
                    {"of", tensor.gradient ? "gradient" : "parameter"},
                    {"norm", tensor.norm},
                    {"mean", tensor.mean},
                    {"min", tensor.min},
                    {"max", tensor.max}}
                   .dump());
  }
}

void MetricsWriter::write(const OwnMetrics& metrics) {
  Json line{{"kind", "own"}, {metrics.of, metrics.index}};
  if (metrics.learning_rate) line["lr"] = *metrics.learning_rate;
  for (const MetricValue& metric : metrics.values) line["metrics"][metric.name] = metric.value;
  write_line(line.dump());
}

void MetricsWriter::write_line(const std::string& line) {
  out_ << line << '\n' << std::flush;
  if (!out_) fail(path_);
  bytes_ += static_cast<std::int64_t>(line.size()) + 1;
}

}  // namespace rubato
