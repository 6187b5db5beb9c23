#include "option_difference.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/core/file.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// The text of an option, with the SHA-256 of its file instead of the name if there is one.
std::string content_of(const RunOption& option, const std::string& text) {
  if (option.map_path == nullptr) return text;
  return option.map_path(text, [](const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return file;
    return fs::path("sha256-" + Sha256::hex_of(read_file(file)).substr(0, 12));
  });
}

}  // namespace

std::vector<NamedDifference> differing_options(const RunConfiguration& a,
                                               const RunConfiguration& b) {
  constexpr const char* kNotSet = "not set";
  const bool exact = a.exact && b.exact;
  std::vector<NamedDifference> differing;
  for (const RunOption& option : run_options()) {
    const bool matters =
        option.affects == Affects::bits || (option.affects == Affects::speed && !exact);
    // The other options of a fork say what is different in it.
    if (!matters || option.name == "from") continue;
    const auto of_a = option.text(a);
    const auto of_b = option.text(b);
    if (of_a == of_b && (!of_a || option.map_path == nullptr)) continue;
    std::array<std::string, 2> contents{of_a ? content_of(option, *of_a) : kNotSet,
                                        of_b ? content_of(option, *of_b) : kNotSet};
    if (contents[0] == contents[1]) continue;
    if (of_a == of_b) {
      differing.push_back({.name = option.name, .texts = std::move(contents)});
    } else {
      differing.push_back(
          {.name = option.name, .texts = {of_a.value_or(kNotSet), of_b.value_or(kNotSet)}});
    }
  }
  return differing;
}

}  // namespace rubato
