#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/config/data_source.hpp>
#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>

namespace rubato {

namespace {

constexpr std::string_view kMnist = "mnist:";

}  // namespace

void require_data(const std::string& text) {
  if (text == "digits" || (text.starts_with(kMnist) && text.size() > kMnist.size())) return;
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) {
    throw Error(fmt::format("'{}' is a folder; did you mean '{}{}'?", text, kMnist, text));
  }
  throw Error(unknown_name_message("data set", text,
                                   std::array<std::string_view, 2>{"digits", "mnist:DIR"}));
}

std::optional<std::filesystem::path> mnist_folder(const std::string& data) {
  if (!data.starts_with(kMnist)) return std::nullopt;
  return data.substr(kMnist.size());
}

std::string mnist_data(const std::filesystem::path& folder) {
  return fmt::format("{}{}", kMnist, folder.string());
}

}  // namespace rubato
