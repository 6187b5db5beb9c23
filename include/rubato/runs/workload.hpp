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
#include <rubato/steps/step_source.hpp>

namespace rubato {

class MappedFile;

/// A file that a configuration names and a run depends on, as it was read.
struct WorkloadFile {
  /// The option that names it: "model".
  std::string option;
  /// How its copy in the run folder ends: ".pt".
  std::string extension;
  /// They lie in `mapping` where there is one, which is not to be made shorter in the meantime.
  std::string_view bytes;
  std::shared_ptr<const MappedFile> mapping{};
};

/// What a model says of samples.
enum class Prediction {
  outputs,  ///< as they are
  classes,  ///< the index of the largest output of each sample, or of each token of it
};

/// The model and the data that a configuration names, loaded once; any number of trainers can be
/// made from it. There is one kind for each engine: dense_workload(), and with libtorch
/// torch_workload().
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  /// For people, in a line: "mnist-cnn on digits: 12000 training and 2000 test images".
  [[nodiscard]] virtual std::string description() const = 0;
  /// To train on.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Whether the targets of the data are real numbers, and not class indices.
  [[nodiscard]] virtual bool has_real_targets() const { return false; }
  [[nodiscard]] virtual EngineFacts engine() const = 0;
  /// What makes it slower on this machine than it could be, and what to do about it; empty if
  /// nothing does.
  [[nodiscard]] virtual std::string warning() const { return {}; }

  /// All of them but data and traces.
  [[nodiscard]] virtual std::span<const WorkloadFile> files() const { return {}; }

  /// What a run keeps about its data, as JSON, so that its model can be used on other data; empty
  /// if there is nothing to keep.
  [[nodiscard]] virtual std::string data_record() const { return {}; }
  /// Of the labels of a table, in the order of the classes; empty of other data.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  /// Of the model's gradient, as cores exchange it.
  [[nodiscard]] virtual std::int64_t gradient_bytes() const = 0;

  /// A trainer that begins anew, with the test set where there is one. Throws Error as Trainer
  /// does. The trainer keeps what it needs of the workload.
  [[nodiscard]] virtual Trainer make_trainer(std::unique_ptr<StepSource> steps,
                                             const TrainOptions& options) const = 0;

  /// Trained weights are the bytes of a file, whose name ends with this behind a dot. They are
  /// read where they lie, when the source is called.
  [[nodiscard]] virtual std::string_view weights_suffix() const { return "safetensors"; }
  [[nodiscard]] virtual ByteSource weights(std::span<const NamedArray> parameters,
                                           std::span<const NamedArray> buffers) const;
  /// The trained model with all that it computes, as a file that needs nothing else; empty where
  /// there is none but its weights.
  [[nodiscard]] virtual ByteSource model_file(std::span<const NamedArray> parameters,
                                              std::span<const NamedArray> buffers) const {
    static_cast<void>(parameters), static_cast<void>(buffers);
    return {};
  }

  /// What the model of `trainer`, one of this workload's, says of the samples of the test set, in
  /// their order, which is the first dimension: "output", or "output0" and so on of several; or
  /// "class". The same bits for every number of threads. Throws Error where there are no classes,
  /// and where only another engine predicts.
  [[nodiscard]] virtual ArrayCopies predict(const Trainer& trainer, Prediction what) const;
};

/// Loads what a configuration names. Throws Error for what is missing, damaged or too large.
using LoadWorkload = std::function<std::shared_ptr<const Workload>(const RunConfiguration&)>;

/// The library's options for those of a configuration.
[[nodiscard]] TrainOptions train_options(const RunConfiguration& configuration);

/// A trainer of a workload with `options` in place of train_options(configuration). Throws Error
/// also where a pattern of the configuration names parameters that the model has not.
[[nodiscard]] Trainer make_trainer(const Workload& workload, const RunConfiguration& configuration,
                                   std::unique_ptr<StepSource> steps, const TrainOptions& options);

/// The models that Eigen computes (Engine::eigen): softmax, mlp and quadratic. Throws Error as
/// LoadWorkload does, and for any other model.
[[nodiscard]] std::shared_ptr<const Workload> dense_workload(const RunConfiguration& configuration);

/// What a configuration says of the options that `rubato eval` takes, on which it depends what a
/// model does on the test set, of the model with `weights` (a file or a run's folder); all else as
/// by default.
[[nodiscard]] RunConfiguration evaluation_configuration(const RunConfiguration& run,
                                                        const std::filesystem::path& weights);

/// Evaluates the model of a workload, with its initial weights, on its test set. Nothing is
/// trained. Throws Error as Trainer does.
[[nodiscard]] Evaluation evaluate(const Workload& workload, const RunConfiguration& configuration);

/// What it says of the samples, as Workload::predict() does.
[[nodiscard]] ArrayCopies predict(const Workload& workload, const RunConfiguration& configuration,
                                  Prediction what);

}  // namespace rubato
