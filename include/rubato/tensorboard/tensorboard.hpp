#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/tensorboard/event_file.hpp>
#include <rubato/tensorboard/hyperparameter.hpp>
#include <rubato/train/observer.hpp>

namespace rubato {

class EventFolder;

struct TensorBoardOptions {
  /// Of parameters whose name matches this shell pattern there are histograms, and of their
  /// gradients; empty is none.
  std::string histograms{};
  /// At the steps 0, so many, twice as many, ...; at least 1.
  std::int64_t histograms_every = 100;
  /// What HPARAMS shows of the run.
  std::vector<Hyperparameter> hyperparameters{};
};

/// Writes the curves of a training for TensorBoard, into event files in a folder of their own, which
/// is the folder of one run: `tensorboard --logdir FOLDER` shows it, and so does the folder of many
/// such folders.
///
///     trainer.add_observer<rubato::TensorBoard>("logs/first");
///
/// Over steps, which count from 0 over the whole run:
///
///     of each step (StepRecord, StepTiming, ClockTime)
///       train/       loss, lr, gain, iterations, gradient_norm, noise_scale, measured_gain,
///                    loss_scale
///       step/        batch, cores, scale, faults (cores that died in it), skipped
///       seconds/     data, compute, reduce, update, wall
///       clock/       hours, core_hours, money, idle_hours, lost_hours, restarts
///       decision/    each input by its name
///     of each epoch (EpochRecord), at its last step
///       epoch/       train_loss, samples, steps, train_seconds, test_seconds
///       test/        loss, accuracy, top_k_accuracy
///       metrics/     the user's own, by their names
///     where they are asked for
///       weights/     histograms of parameters, before the step's update
///       gradients/   histograms of the mean gradients of the step
///
/// What was not measured is left out. A training that goes on from a state begins a file of its own
/// beside those of before, of which it takes away what is later than the state.
class TensorBoard final : public Observer {
 public:
  /// Makes the folder and those above it. Its event files that are rubato's are removed, or kept for
  /// load(). Throws Error when options.histograms_every is below 1, OutputError when the folder or a
  /// file cannot be written.
  explicit TensorBoard(std::filesystem::path folder, TensorBoardOptions options = {},
                       bool keep = false);
  ~TensorBoard() override;

  [[nodiscard]] std::string_view name() const override { return "tensorboard"; }
  /// Throws Error when there are to be histograms and no parameter matches.
  void on_added(Training& training) override;
  // Those that write throw OutputError when a file cannot be written.
  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray> gradients) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  /// Which files there are, and how long the last one is. load() throws Error when one of them has
  /// gone or the last one has become shorter.
  void save(State& state) const override;
  void load(const Training& training, const State& state) override;

  /// Brings all events to the disk.
  void sync();
  /// For HPARAMS: the run has ended, and whether well. To be called behind whatever saves a state
  /// that another run goes on from, if it is called.
  void end(bool success);

 private:
  using TagsByName = std::map<std::string, std::string, std::less<>>;

  EventFile& file();
  void add(std::string_view tag, double value) { scalars_.push_back({tag, value}); }
  void add(TagsByName& tags, std::string_view group, std::string_view name, double value);
  void add_clock(const ClockTime& time);
  void write(std::int64_t step);

  TensorBoardOptions options_;
  std::unique_ptr<EventFolder> folder_;
  std::unique_ptr<EventFile> file_;
  // In the step to come.
  std::int64_t faults_ = 0;
  // Of the next event; kept for its memory.
  std::vector<Scalar> scalars_;
  // By names that are not known beforehand.
  TagsByName decision_tags_;
  TagsByName metric_tags_;
};

}  // namespace rubato
