#include "model_source.hpp"

#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"

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

void require_option_file(std::string_view option, const std::filesystem::path& file,
                         std::string_view accepted) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return;
  throw Error(
      fmt::format("--{}: no such file as '{}'; accepted: {}", option, file.string(), accepted));
}

}  // namespace rubato
