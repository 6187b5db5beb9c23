#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>

namespace rubato {

/// The distribution of the finite numbers of an array: how many of them are in each bucket, and
/// their moments. Infinities and NaNs are not counted.
struct Histogram {
  /// The smallest and the largest number; both 0 if none is finite.
  double min = 0;
  double max = 0;
  /// How many numbers are finite.
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  /// The ends of the buckets in ascending order: bucket i holds the numbers from limits[i - 1] (the
  /// first bucket from minus infinity) to below limits[i]. Empty buckets in a row are merged.
  std::vector<double> limits{};
  /// The number of numbers in each bucket.
  std::vector<double> counts{};
};

/// The histogram of an array in the default buckets of TensorFlow, which TensorBoard expects: they
/// end at 0, at 1e-12 * 1.1^i for i = 0, 1, ... up to 1e20, at the negatives of these, and at the
/// ends of the range of double. Reads the array once. Throws Error unless it is F64, F32 or I64.
[[nodiscard]] Histogram histogram_of(const NamedArray& array);

/// A setting of a run, for HPARAMS, TensorBoard's table of runs.
struct Hyperparameter {
  std::string name{};
  std::variant<bool, double, std::string> value{};

  friend bool operator==(const Hyperparameter&, const Hyperparameter&) = default;
};

/// The type of a hyperparameter's values in all runs of an experiment.
enum class HyperparameterType { flag, number, text };

/// A column of HPARAMS that shows a hyperparameter.
struct HyperparameterColumn {
  std::string name{};
  HyperparameterType type = HyperparameterType::text;

  friend bool operator==(const HyperparameterColumn&, const HyperparameterColumn&) = default;
};

/// A value of a curve at a step. The tag names the curve; TensorBoard groups curves by the part of
/// the tag before its first "/".
struct Scalar {
  std::string_view tag{};
  /// The value, which is stored as a 32-bit float.
  double value = 0;
};

/// Writes a new event file of TensorBoard, which finds files whose names contain "tfevents". The
/// wall time of an event is that of the call.
///
/// Events are buffered, and handed to the operating system once a second or whenever 64 KiB of them
/// have accumulated. Only whole records are written, so a reader never sees part of one.
///
/// Every operation except bytes() throws OutputError when the file cannot be written.
/// The events that were in the file before stay readable, and the file may be written to again.
class EventFile {
 public:
  /// Creates the file, or truncates one that exists.
  explicit EventFile(std::filesystem::path path);
  /// Writes the buffered events and ignores errors; call flush() first to learn of them.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Writes all scalars as one event.
  void write_scalars(std::int64_t step, std::span<const Scalar> scalars);
  void write_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram);
  /// Records that training continues at `step`. TensorBoard then drops everything that it has read
  /// of this step and of later ones, also from earlier files of the same folder.
  void write_restart(std::int64_t step);
  /// Records the settings of the run in this folder: a row of HPARAMS. To be called at most once;
  /// TensorBoard takes the metrics of the row from the ends of the run's curves.
  void write_hyperparameters(std::span<const Hyperparameter> hyperparameters);
  /// Records that the run has ended, and whether it succeeded.
  void write_end(bool success);
  /// Records which columns HPARAMS shows for all runs below this folder: hyperparameters, and
  /// curves by their tags.
  void write_experiment(std::span<const HyperparameterColumn> hyperparameters,
                        std::span<const std::string> metrics);

  /// Hands the buffered events to the operating system.
  void flush();
  /// Flushes, and waits until the events are on the disk. Also throws OutputError when the file was
  /// removed or replaced.
  void sync();

  /// The length of the file including the events that are still buffered.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

class EventFolder;

struct TensorBoardOptions {
  /// A shell pattern: histograms are written of the parameters whose names match it, and of their
  /// gradients. Empty for no histograms.
  std::string histograms{};
  /// Histograms are written every this many steps, beginning with step 0; at least 1.
  std::int64_t histograms_every = 100;
  /// The settings that HPARAMS shows for the run.
  std::vector<Hyperparameter> hyperparameters{};
};

/// Writes the curves of a training for TensorBoard, as event files in a folder. A folder is a run
/// to TensorBoard: `tensorboard --logdir FOLDER` shows one run, and all runs below FOLDER.
///
///     trainer.add_observer<rubato::TensorBoard>("logs/first");
///
/// The horizontal axis is the step, counted from 0 over the whole run. docs/records.md lists the
/// tags: those of a step (train/, step/, seconds/, clock/, decision/), and those of an epoch
/// (epoch/, test/, metrics/), at its last step. In addition there are step/faults, the number of
/// cores that died in a step, and, if TensorBoardOptions::histograms asks for them, weights/ and
/// gradients/: histograms of parameters before the step's update, and of the mean gradients of the
/// step.
///
/// Values that were not measured are left out. A training that continues from a state begins a new
/// file, and removes from the earlier ones whatever was written after the state was saved.
class TensorBoard final : public Observer {
 public:
  /// Creates the folder and those above it. Removes event files that rubato has written there or,
  /// with `keep`, keeps them for load(). Throws Error when options.histograms_every is below 1,
  /// OutputError when the folder or a file cannot be written.
  explicit TensorBoard(std::filesystem::path folder, TensorBoardOptions options = {},
                       bool keep = false);
  ~TensorBoard() override;
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  [[nodiscard]] std::string_view name() const override { return "tensorboard"; }
  /// Throws Error when no parameter matches TensorBoardOptions::histograms.
  void on_added(Training& training) override;
  // The members that write throw OutputError when the file cannot be written.
  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray> gradients) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  /// Saves which files there are, and how long the last one is. Loading throws Error when one of
  /// them is missing, or the last one is shorter than it was, and changes no file: what was written
  /// after the state was saved goes with the first event, or with sync(). With a state of a
  /// training that had no such observer, the existing files stay as they are.
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Waits until all events are on the disk. Throws OutputError.
  void sync();
  /// Tells HPARAMS that the run has ended, and whether it succeeded. To be called after the last
  /// state was saved, so that a run that continues from there has not ended. Throws OutputError.
  void end(bool success);

 private:
  using TagsByName = std::map<std::string, std::string, std::less<>>;

  EventFile& file();
  // Adds a value to the next event. `tag` must outlive this object; the tag of one of several
  // numbers has a "*" in place of their names, and `of` is the number's name.
  void add(std::string_view tag, std::string_view of, double value);
  void write(std::int64_t step);

  TensorBoardOptions options_;
  std::unique_ptr<EventFolder> folder_;
  std::unique_ptr<EventFile> file_;
  // The step at which a loaded state continues, until there is a file that says so; and whether the
  // state names the files before it.
  std::optional<std::int64_t> restart_at_;
  bool has_files_ = false;
  // Cores that died in the current step.
  std::int64_t faults_ = 0;
  // The scalars of the current event; a member so that its memory is reused.
  std::vector<Scalar> scalars_;
  // The tags of several numbers that have been written so far, by the tag with the "*".
  std::map<std::string_view, TagsByName> tags_;
};

}  // namespace rubato
