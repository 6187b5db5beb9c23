// This file parses --model and --loss, and derives from a configuration which engine computes the
// run. The form script:FILE is recognised before the tables of models and losses are searched. The
// engine follows from what cannot be computed elsewhere (docs/adr/0029): why_libtorch() compares
// each option that only libtorch implements with its default, why_eigen() asks the model, and Eigen
// computes the run unless libtorch has to. An option that Eigen ignores must therefore have a line
// in why_libtorch().

#include "model_choice.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
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
  throw_error(
      "--weights: the folder {} has no weights.pt and no weights.safetensors; accepted: that of a "
      "run that has ended",
      file_or_run.string());
}

void require_visible(std::string_view place, const std::filesystem::path& path) {
  std::error_code error;
  static_cast<void>(std::filesystem::status(path, error));
  if (error != std::errc::permission_denied) return;
  throw_error("{}cannot look for {}: {}; accepted: a path whose folders you may enter", place,
              path.string(), error.message());
}

void require_option_file(std::string_view option, const std::filesystem::path& file,
                         std::string_view accepted) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return;
  require_visible(fmt::format("--{}: ", option), file);
  throw_error("--{}: no such file as '{}'; accepted: {}", option, file.string(), accepted);
}

namespace {

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
    const auto script = choice(models().back());
    script->script = std::move(file);
    return script;
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(text, ignored)) {
    throw_error("'{0}' is a file; did you mean '{1}'?", text, script_text(text));
  }
  const ParsedModel parsed = parse_model(text);
  const auto built_in = choice(parsed.entry);
  built_in->options = parsed.options;
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
    throw_error("{} is computed by Eigen, which cannot follow {}; accepted: one or the other",
                *eigen, *libtorch);
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
