#include "evaluated_run.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "runs/config/values/model_source.hpp"

namespace rubato {

void require_weights_of_summary(const std::filesystem::path& weights,
                                std::span<const NamedArray> parameters) {
  const std::filesystem::path summary_file = weights / "summary.json";
  std::error_code ignored;
  if (weights.empty() || !std::filesystem::is_regular_file(summary_file, ignored)) return;
  const auto summary =
      nlohmann::json::parse(read_file(summary_file), nullptr, /*allow_exceptions=*/false);
  const bool known = summary.is_object() && summary.contains("weights_sha256") &&
                     summary["weights_sha256"].is_string();
  if (!known) {
    throw Error(fmt::format("{}: names no weights; accepted: what the run wrote, or --weights FILE",
                            summary_file.string()));
  }
  const auto wanted = summary["weights_sha256"].get<std::string>();
  const std::string found = sha256_of(parameters);
  if (found == wanted) return;
  const std::string file = weights_file(weights).string();
  throw Error(
      fmt::format("{}: its weights have the SHA-256 {}, and {} says {}; accepted: the weights that "
                  "the run wrote, or --weights {} for these",
                  file, found, summary_file.filename().string(), wanted, file));
}

}  // namespace rubato
