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
  /// A shell pattern: histograms are written of the parameters whose names match it, and of their
  /// gradients. Empty for none.
  std::string histograms{};
  /// Histograms are written at every so many steps, the first of which is step 0; at least 1.
  std::int64_t histograms_every = 100;
  /// What HPARAMS shows of the run.
  std::vector<Hyperparameter> hyperparameters{};
};

/// Writes the curves of a training for TensorBoard, as event files in a folder. A folder is a run
/// to TensorBoard: `tensorboard --logdir FOLDER` shows one run, and all runs below FOLDER.
///
///     trainer.add_observer<rubato::TensorBoard>("logs/first");
///
/// The horizontal axis is the step, which counts from 0 over the whole run. docs/records.md has the
/// tags: those of a step (train/, step/, seconds/, clock/, decision/), and of an epoch (epoch/,
/// test/, metrics/), at its last step. Beside them are step/faults, how many cores died in a step,
/// and where TensorBoardOptions::histograms asks for them weights/ and gradients/: histograms of
/// parameters, before the step's update, and of the mean gradients of the step.
///
/// What was not measured is left out. A training that goes on from a state begins a file of its
/// own, and removes from the earlier ones what was written after the state was saved.
class TensorBoard final : public Observer {
 public:
  /// Makes the folder and those above it. Event files that rubato has written there are removed, or
  /// with `keep` kept for load(). Throws Error when options.histograms_every is below 1,
  /// OutputError when the folder or a file cannot be written.
  explicit TensorBoard(std::filesystem::path folder, TensorBoardOptions options = {},
                       bool keep = false);
  ~TensorBoard() override;
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  [[nodiscard]] std::string_view name() const override { return "tensorboard"; }
  /// Throws Error when no parameter matches TensorBoardOptions::histograms.
  void on_added(Training& training) override;
  // Those that write throw OutputError when the file cannot be written.
  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray> gradients) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  /// Which files there are, and how long the last one is. Where it loads, it throws Error when one
  /// of them is missing, or the last one is shorter than it was. With a state of a training that
  /// had no such observer, the files that are there stay as they are.
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Waits until all events are on the disk. Throws OutputError.
  void sync();
  /// Tells HPARAMS that the run has ended, and whether it succeeded. To be called after the last
  /// state was saved, so that a run that goes on from there has not ended. Throws OutputError.
  void end(bool success);

 private:
  using TagsByName = std::map<std::string, std::string, std::less<>>;

  EventFile& file();
  // A value for the next event. `tag` lives as long as this; of one of several numbers it has a "*"
  // in place of their names, and `of` is its name.
  void add(std::string_view tag, std::string_view of, double value);
  void write(std::int64_t step);

  TensorBoardOptions options_;
  std::unique_ptr<EventFolder> folder_;
  std::unique_ptr<EventFile> file_;
  // Cores that died in the step that is being taken.
  std::int64_t faults_ = 0;
  // Of the event that is being made; a member for its memory.
  std::vector<Scalar> scalars_;
  // The tags of several numbers that have been written, by the tag with the "*".
  std::map<std::string_view, TagsByName> tags_;
};

}  // namespace rubato
