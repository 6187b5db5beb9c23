// The schemas of steps and epochs say which numbers have a curve, and under which tag
// (each_curve()). file() opens the event file of this process on first use; if a state was loaded,
// it first truncates the earlier files to that state and then writes a restart, at which a running
// TensorBoard drops the later steps (docs/adr/0039). Loading itself changes no file. A step's
// scalars are collected and written as one event, so their tags have to live in the schema or in
// tags_.

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/tensorboard.hpp>

#include "base/core/throw_error.hpp"
#include "event_folder.hpp"
#include "loop/train/record_schemas.hpp"

namespace rubato {

namespace {

// Calls add(tag, of, value) for each number of a record that has a curve; `of` is the name of one
// of several numbers under a tag, else empty.
template <class Record, class Add>
void each_curve(const RecordSchema<Record>& schema, const Record& record, const Add& add) {
  for (const RecordColumn<Record>& column : schema.columns) {
    const std::string_view tag = column.info().tag;
    if (tag.empty()) continue;
    std::visit(
        [&](const auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value>) {
            add(tag, std::string_view(), static_cast<double>(value));
          } else if constexpr (std::is_same_v<Value, std::vector<NamedNumber>>) {
            for (const NamedNumber& of : value) add(tag, std::string_view(of.name), of.value);
          }
        },
        column.read(record));
  }
}

}  // namespace

TensorBoard::TensorBoard(std::filesystem::path folder, TensorBoardOptions options, bool keep)
    : options_(std::move(options)) {
  if (options_.histograms_every < 1) {
    throw_error("histograms every {} steps: at least 1 is needed", options_.histograms_every);
  }
  folder_ = std::make_unique<EventFolder>(std::move(folder));
  if (keep) return;
  folder_->remove_all();
  static_cast<void>(file());
}

TensorBoard::~TensorBoard() = default;

EventFile& TensorBoard::file() {
  if (file_ != nullptr) return *file_;
  if (restart_at_ && has_files_) folder_->go_back();
  const bool is_first = folder_->empty();
  file_ = std::make_unique<EventFile>(folder_->next());
  if (is_first && !options_.hyperparameters.empty()) {
    file_->write_hyperparameters(options_.hyperparameters);
  }
  if (restart_at_) {
    file_->write_restart(*std::exchange(restart_at_, std::nullopt));
    // The flush tells a TensorBoard that has read later events that these are gone.
    file_->flush();
  }
  return *file_;
}

void TensorBoard::on_added(Training& training) {
  if (options_.histograms.empty()) return;
  static_cast<void>(matching(training.parameters(), options_.histograms));
}

bool TensorBoard::wants_gradients(const StepPlan& step) const {
  return !options_.histograms.empty() && step.index.value() % options_.histograms_every == 0;
}

void TensorBoard::on_gradients(Training& training, const StepPlan& step,
                               std::span<const NamedArray> gradients) {
  // Another observer may have asked for these gradients.
  if (!wants_gradients(step)) return;
  const auto write = [&](std::string_view group, const NamedArray& array) {
    file().write_histogram(step.index.value(), fmt::format("{}/{}", group, array.name),
                           histogram_of(array));
  };
  for (const NamedArray& parameter : matching(training.parameters(), options_.histograms)) {
    write("weights", parameter);
    // A frozen parameter has no gradient.
    const auto gradient =
        std::find_if(gradients.begin(), gradients.end(),
                     [&](const NamedArray& candidate) { return candidate.name == parameter.name; });
    if (gradient != gradients.end()) write("gradients", *gradient);
  }
}

void TensorBoard::on_fault(Training& training, const StepPlan& step,
                           std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training), static_cast<void>(step), static_cast<void>(cores_left);
  faults_ += std::ssize(faults);
}

void TensorBoard::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  each_curve(step_schema(), step, [&](auto tag, auto of, double value) { add(tag, of, value); });
  if (faults_ > 0) add("step/faults", {}, static_cast<double>(std::exchange(faults_, 0)));
  write(step.plan.index.value());
}

void TensorBoard::on_epoch(Training& training, const EpochRecord& epoch) {
  each_curve(epoch_schema(), epoch, [&](auto tag, auto of, double value) { add(tag, of, value); });
  write(std::max<std::int64_t>(training.result().steps - 1, 0));
  // Users wait for these values, and the next step may be far off.
  file().flush();
}

void TensorBoard::add(std::string_view tag, std::string_view of, double value) {
  if (of.empty()) {
    scalars_.push_back({tag, value});
    return;
  }
  TagsByName& tags = tags_.try_emplace(tag).first->second;
  auto found = tags.find(of);
  if (found == tags.end()) found = tags.emplace(of, with_name(tag, of)).first;
  scalars_.push_back({found->second, value});
}

void TensorBoard::write(std::int64_t step) {
  file().write_scalars(step, scalars_);
  scalars_.clear();
}

void TensorBoard::visit_state(StateVisitor& state, const Training& training) {
  if (state.loading()) {
    file_.reset();
    faults_ = 0;
    scalars_.clear();
    has_files_ = !state.has_none();
    if (has_files_) folder_->visit_state(state, 0);
    restart_at_ = training.result().steps;
    return;
  }
  if (file_ == nullptr && !restart_at_) return;
  // A state relies on these bytes, even if the process is killed.
  file().flush();
  folder_->visit_state(state, file_->bytes());
}

void TensorBoard::sync() {
  file().sync();
}

void TensorBoard::end(bool success) {
  file().write_end(success);
  file().sync();
}

}  // namespace rubato
