#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_source.hpp>

namespace rubato {

class MappedFile;

/// A file that a configuration names and that a run depends on, as it was read.
struct WorkloadFile {
  /// The option that names it, such as "model".
  std::string option;
  /// The extension of its copy in the run folder, such as ".pt".
  std::string extension;
  /// The content. It lies in `mapping` if that is set; the file must not be shortened meanwhile.
  std::string_view bytes;
  std::shared_ptr<const MappedFile> mapping{};
};

/// The form in which a model's predictions are returned.
enum class Prediction {
  outputs,  ///< the outputs as they are
  classes,  ///< the index of the largest output of each sample, or of each token of it
};

/// The model and the data that a configuration names, loaded once; any number of trainers can be
/// made from it. There is one kind for each engine: dense_workload() and, with libtorch,
/// torch_workload().
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  /// A line for people: "mnist-cnn on digits: 12000 training and 2000 test images".
  [[nodiscard]] virtual std::string description() const = 0;
  /// The number of training samples.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// The sampler of the weights in the data that the configuration which it was loaded for asks for
  /// (Sampler::weights); empty if it asks for none, or if the workload does not know its data. A
  /// workload is not for runs with another sampler of weights.
  [[nodiscard]] virtual Sampler sampler() const { return {}; }
  /// True if the targets of the data are real numbers: neither class indices nor probabilities of
  /// classes.
  [[nodiscard]] virtual bool has_real_targets() const { return false; }
  /// The bytes of text for which a target of the test set stands on average; 0 if the data are not
  /// text, or there is no test set.
  [[nodiscard]] virtual double bytes_per_target() const { return 0; }
  [[nodiscard]] virtual EngineFacts engine() const = 0;
  /// A warning that says what makes it slower on this machine than it could be, and what to do
  /// about it; empty if nothing does.
  [[nodiscard]] virtual std::string warning() const { return {}; }

  /// All files that it depends on, except data and traces.
  [[nodiscard]] virtual std::span<const WorkloadFile> files() const { return {}; }

  /// Throws Error if the data are not what other options of a run need, as loading does for the run
  /// that it is for.
  virtual void require_suits(const RunConfiguration& /*run*/) const {}
  /// Computes now what the first run would have to compute, such as fingerprints of the data.
  virtual void complete() const {}

  /// The facts about the data that a run keeps, as JSON, so that its model can be used on other
  /// data; empty if there is nothing to keep.
  [[nodiscard]] virtual std::string data_record() const { return {}; }
  /// The labels of a table in the order of the classes; empty for other data.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  /// Size of the model's gradient as cores exchange it.
  [[nodiscard]] virtual std::int64_t gradient_bytes() const = 0;

  /// A trainer that begins anew, with the test set if there is one. Throws Error as Trainer does.
  /// The trainer keeps alive whatever it needs of the workload.
  [[nodiscard]] virtual Trainer make_trainer(std::unique_ptr<StepSource> steps,
                                             const TrainOptions& options) const = 0;

  /// Trained weights are written as a file with this suffix, which follows a dot. The source reads
  /// the arrays in place, when it is called.
  [[nodiscard]] virtual std::string_view weights_suffix() const { return "safetensors"; }
  [[nodiscard]] virtual ByteSource weights(std::span<const NamedArray> parameters,
                                           std::span<const NamedArray> buffers) const;
  /// The trained model including its code, as a file that needs nothing else; empty if only its
  /// weights can be written.
  [[nodiscard]] virtual ByteSource model_file(std::span<const NamedArray> parameters,
                                              std::span<const NamedArray> buffers) const {
    static_cast<void>(parameters), static_cast<void>(buffers);
    return {};
  }

  /// The predictions of the model of `trainer`, one of this workload's, for the samples of the test
  /// set in their order, which is the first dimension: "output", or "output0" and so on if there
  /// are several; or "class". The same bits for every number of threads. Throws Error if there are
  /// no classes, or if only another engine can predict.
  [[nodiscard]] virtual ArrayCopies predict(const Trainer& trainer, Prediction what) const;
  /// The names of these samples, such as those of files of images; empty if they have none.
  [[nodiscard]] virtual std::vector<std::string> sample_names() const { return {}; }
};

/// Loads the model and the data that a configuration names. Throws Error for files that are
/// missing, damaged or too large.
using LoadWorkload = std::function<std::shared_ptr<const Workload>(const RunConfiguration&)>;

/// A trainer of a workload with `options` instead of train_options(configuration). Throws Error
/// also if a pattern of the configuration matches no parameter of the model.
[[nodiscard]] Trainer make_trainer(const Workload& workload, const RunConfiguration& configuration,
                                   std::unique_ptr<StepSource> steps, const TrainOptions& options);

/// The models that Eigen computes (Engine::eigen): softmax, mlp and quadratic. Throws Error as
/// LoadWorkload does, and for any other model.
[[nodiscard]] std::shared_ptr<const Workload> dense_workload(const RunConfiguration& configuration);

/// A configuration for `rubato eval` of the model with `weights` (a file or a run's folder): it
/// takes from `run` the options on which the results on the test set depend; all others have their
/// defaults.
[[nodiscard]] RunConfiguration evaluation_configuration(const RunConfiguration& run,
                                                        const std::filesystem::path& weights);

/// Evaluates the model of a workload, with its initial weights, on its test set, without training.
/// Throws Error as Trainer does.
[[nodiscard]] Evaluation evaluate(const Workload& workload, const RunConfiguration& configuration);

/// Its predictions for the samples, as those of Workload::predict().
[[nodiscard]] ArrayCopies predict(const Workload& workload, const RunConfiguration& configuration,
                                  Prediction what);

}  // namespace rubato
