// The form script:FILE of a model or a loss is recognised before their tables are searched.

#include "model_choice.hpp"

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

}  // namespace rubato
