#include "model_choice.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "base/core/file.hpp"
#include "runs/config/allowed.hpp"

namespace rubato {

namespace {

constexpr std::string_view kScript = "script:";

}  // namespace

std::optional<std::filesystem::path> script_file(const std::string& text) {
  if (!text.starts_with(kScript) || text.size() == kScript.size()) return std::nullopt;
  return text.substr(kScript.size());
}

std::string script_text(const std::filesystem::path& file) {
  return fmt::format("{}{}", kScript, file.string());
}

std::filesystem::path weights_file(const std::filesystem::path& file_or_run) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(file_or_run, ignored)) {
    require_option_file("weights", file_or_run,
                        "a state_dict that torch.save() wrote, or the folder of a run");
    return file_or_run;
  }
  require_readable_folder(file_or_run);
  for (const char* name : {"weights.pt", "weights.safetensors"}) {
    if (std::filesystem::is_regular_file(file_or_run / name, ignored)) return file_or_run / name;
  }
  throw Error(
      fmt::format("--weights: the folder {} has no weights.pt and no weights.safetensors; "
                  "accepted: that of a run that has ended",
                  file_or_run.string()));
}

void require_visible(std::string_view place, const std::filesystem::path& path) {
  std::error_code error;
  static_cast<void>(std::filesystem::status(path, error));
  if (error != std::errc::permission_denied) return;
  throw Error(fmt::format("{}cannot look for {}: {}; accepted: a path whose folders you may enter",
                          place, path.string(), error.message()));
}

void require_option_file(std::string_view option, const std::filesystem::path& file,
                         std::string_view accepted) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return;
  require_visible(fmt::format("--{}: ", option), file);
  throw Error(
      fmt::format("--{}: no such file as '{}'; accepted: {}", option, file.string(), accepted));
}

namespace {

std::int64_t features_of(const DataShape& data) {
  return data.channels * data.height * data.width;
}

std::int64_t parameters_of_perceptron(const ModelOptions& options, const DataShape& data) {
  return dense_parameters(features_of(data), std::get<PerceptronOptions>(options).hidden,
                          data.outputs);
}

std::int64_t parameters_of_toy_net(const ModelOptions& /*none*/, const DataShape& data) {
  constexpr std::int64_t kHidden = 512;
  // Parameters of a layer with batch normalisation: weights, biases and two vectors.
  const auto normalised = [](std::int64_t inputs, std::int64_t outputs) {
    return (inputs + 3) * outputs;
  };
  constexpr std::int64_t kWindow = 9;
  // Pixels along a side after two convolutions and a pooling, twice.
  const auto side = [](std::int64_t pixels) {
    return std::max<std::int64_t>(0, ((pixels - 4) / 2 - 4) / 2);
  };
  return normalised(kWindow * data.channels, 64) + normalised(kWindow * 64, 128) +
         normalised(kWindow * 128, 256) + normalised(kWindow * 256, 512) +
         normalised(512 * side(data.height) * side(data.width), kHidden) +
         (kHidden + 1) * data.outputs;
}

std::int64_t parameters_of_transformer(const ModelOptions& model, const DataShape& data) {
  const auto& options = std::get<TransformerOptions>(model);
  if (data.vocabulary > 0) {
    return sequence_transformer_parameters(options, data.width, data.vocabulary, data.outputs);
  }
  return transformer_parameters(options, data.height, data.channels * data.width, data.outputs);
}

constexpr std::array<ModelEntry, 8> kModels{
    {{.name = "mnist-cnn",
      .help = "PyTorch's classic MNIST network, for images of 1 x 28 x 28; libtorch",
      .in_libtorch = true,
      .parameters = [](const ModelOptions&, const DataShape&) { return std::int64_t{21'900}; }},
     {.name = "mlp",
      .help = "a multi-layer perceptron; Eigen or libtorch",
      .in_eigen = true,
      .in_libtorch = true,
      .parameters = parameters_of_perceptron,
      .read = [](Spec& spec) -> ModelOptions { return read_perceptron(spec); }},
     {.name = "softmax",
      .help = "softmax regression; Eigen or libtorch",
      .in_eigen = true,
      .in_libtorch = true,
      .parameters =
          [](const ModelOptions&, const DataShape& data) {
            return dense_parameters(features_of(data), {}, data.outputs);
          }},
     {.name = "toy-net",
      .help = "four convolutions and two dense layers, 5.8 million parameters; libtorch",
      .in_libtorch = true,
      .parameters = parameters_of_toy_net},
     {.name = "resnet20",
      .help = "the residual network of 20 layers for small images (He et al. 2016); libtorch",
      .in_libtorch = true,
      .parameters =
          [](const ModelOptions& options, const DataShape& data) {
            return residual_parameters(std::get<ResidualOptions>(options), data.channels,
                                       data.outputs);
          },
      .read = [](Spec& spec) -> ModelOptions { return read_residual(spec); }},
     {.name = "transformer",
      .help = "a transformer encoder, over the rows of an image or the tokens of a text; libtorch",
      .in_libtorch = true,
      .parameters = parameters_of_transformer,
      .read = [](Spec& spec) -> ModelOptions { return read_transformer(spec); }},
     {.name = "quadratic",
      .help = "the noisy quadratic model (Zhang et al. 2019), which needs no data; Eigen",
      .in_eigen = true,
      .classifies = false,
      .parameters = [](const ModelOptions& options,
                       const DataShape&) { return std::get<QuadraticOptions>(options).dim; },
      .read = [](Spec& spec) -> ModelOptions { return read_quadratic(spec); }},
     {.name = "script:FILE",
      .help =
          "any model, as torch.jit.script() or torch.jit.trace() in Python exported it; libtorch",
      .in_libtorch = true}}};

const ModelEntry& script_entry() {
  return kModels.back();
}

// A model of a program's own. Commands cannot have one, so models(), which users see, does not list
// it.
constexpr ModelEntry kOwnModel{
    .name = kOwn, .help = "a model of a program's own", .in_libtorch = true};

// The reason why only Eigen can compute it; empty if libtorch can, too.
std::optional<std::string> why_eigen(const RunConfiguration& run) {
  if (run.model->in_libtorch) return std::nullopt;
  return "--model " + run.model.text();
}

}  // namespace

std::span<const ModelEntry> models() {
  return kModels;
}

template <>
std::shared_ptr<const ModelChoice> Parsed<ModelChoice>::parse(const std::string& text,
                                                              const Extensions& /*own*/) {
  const auto choice = [](const ModelEntry& entry) {
    auto made = std::make_shared<ModelChoice>();
    static_cast<ModelEntry&>(*made) = entry;
    return made;
  };
  if (text == kOwn) return choice(kOwnModel);
  if (auto file = script_file(text)) {
    const auto script = choice(script_entry());
    script->script = std::move(file);
    return script;
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(text, ignored)) {
    throw Error(fmt::format("'{0}' is a file; did you mean '{1}'?", text, script_text(text)));
  }
  Spec spec(text);
  const auto built_in = choice(find_row("model", spec.name(), kModels));
  if (built_in->read != nullptr) built_in->options = built_in->read(spec);
  spec.finish();
  return built_in;
}

std::optional<std::int64_t> ModelChoice::own_samples() const {
  const auto* const quadratic = std::get_if<QuadraticOptions>(&options);
  return quadratic == nullptr ? std::nullopt : std::optional(quadratic->samples);
}

std::int64_t known_gradient_bytes(const RunConfiguration& run, const DataShape& data) {
  const ModelChoice& model = *run.model;
  if (model.parameters != nullptr) {
    return model.parameters(model.options, data) * static_cast<std::int64_t>(sizeof(float));
  }
  const std::int64_t bytes = run.cluster->gradient_bytes;
  if (bytes > 0) return bytes;
  refuse("model " + run.model.text(), "the size of its gradient is not known without loading it",
         "with its bytes, as in --cluster bytes=87600");
}

std::optional<std::string> why_libtorch(const RunConfiguration& run) {
  const RunConfiguration usual;
  if (!run.model->in_eigen) return "--model " + run.model.text();
  if (run.precision != usual.precision) return "--precision " + run.precision.text();
  if (run.operators != usual.operators) return "--operators " + run.operators.text();
  if (run.initializer != usual.initializer) return "--init " + run.initializer.text();
  if (run.buffers != usual.buffers) {
    return fmt::format("--buffers {}", choice_name(kBufferUses, run.buffers));
  }
  if (!run.augment.empty()) return "--augment " + run.augment.text();
  if (!run.weights.empty()) return "--weights " + run.weights.string();
  if (loss_of(run) != loss_of(usual)) return "--loss " + loss_of(run).text();
  if (run.label_smoothing > 0) return fmt::format("--label-smoothing {}", run.label_smoothing);
  return std::nullopt;
}

Engine engine_of(const RunConfiguration& run) {
  const auto libtorch = why_libtorch(run);
  const auto eigen = why_eigen(run);
  if (libtorch && eigen) {
    throw Error(
        fmt::format("{} is computed by Eigen, which cannot follow {}; accepted: one or the "
                    "other",
                    *eigen, *libtorch));
  }
  if (libtorch && run.engine == Engine::eigen) {
    refuse("engine eigen", "only libtorch does " + *libtorch, "--engine libtorch or auto");
  }
  if (eigen && run.engine == Engine::libtorch) {
    refuse("engine libtorch", "only Eigen does " + *eigen, "--engine eigen or auto");
  }
  if (run.engine != Engine::automatic) return run.engine;
  return libtorch ? Engine::libtorch : Engine::eigen;
}

namespace {

void read_class_weights(Spec& spec, LossChoice& loss) {
  constexpr std::int64_t kLargestClass = std::int64_t{1} << 53;
  loss.ignore = spec.whole("ignore", Unset{"every target counts"}, -kLargestClass, kLargestClass);
  loss.class_weights =
      spec.reals("class-weights", Unset{"1 each"}, kNotNegative).value_or(std::vector<double>());
}

constexpr std::array<LossEntry, 5> kLosses{
    {{.name = "cross-entropy",
      .help = "of the softmax of the outputs, logits of [batch, classes], and the classes, without "
              "those equal to ignore, and each weighing what class-weights says",
      .of_classes = true,
      .read = read_class_weights},
     {.name = "nll",
      .help = "the negative log-likelihood of outputs that are log-probabilities of "
              "[batch, classes]; arguments as of cross-entropy",
      .of_classes = true,
      .read = read_class_weights},
     {.name = "mse",
      .help = "the mean squared error of the outputs; classes become one-hot vectors"},
     {.name = "bce",
      .help = "the binary cross entropy of the sigmoid of the outputs; classes become "
              "one-hot vectors"},
     {.name = "script:FILE",
      .help = "any loss, as torch.jit.script() in Python exported it: forward() takes outputs and "
              "targets and gives one number, the mean over the samples, or two, a sum and its "
              "weight"}}};

}  // namespace

std::span<const LossEntry> losses() {
  return kLosses;
}

template <>
std::shared_ptr<const LossChoice> Parsed<LossChoice>::parse(const std::string& text,
                                                            const Extensions& /*own*/) {
  auto loss = std::make_shared<LossChoice>();
  if (text.empty()) return loss;
  LossEntry& entry = *loss;
  loss->script = script_file(text);
  if (loss->script) {
    entry = kLosses.back();
    return loss;
  }
  Spec spec(text);
  entry = find_row("loss", spec.name(), kLosses);
  if (entry.read != nullptr) entry.read(spec, *loss);
  spec.finish();
  return loss;
}

Parsed<LossChoice> loss_of(const RunConfiguration& run) {
  if (!run.loss.empty()) return run.loss;
  return run.model->script || run.model->is_own() ? "cross-entropy" : "nll";
}

}  // namespace rubato
