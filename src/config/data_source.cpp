#include "config/data_source.hpp"

#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/config/run_configuration.hpp>
#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/family.hpp>

namespace rubato {

namespace {

struct DataRow {
  std::string_view name;
  std::string_view help;
};

constexpr std::array<DataRow, 2> kData{
    {{"digits", "the built-in digits: 12,000 images of 1 x 28 x 28 that the program draws itself"},
     {"mnist:DIR",
      "the IDX files of MNIST, Fashion-MNIST or KMNIST in the folder DIR, raw or .gz"}}};

constexpr std::string_view kMnist = "mnist:";

}  // namespace

std::vector<Strategy> data_sources() {
  return strategies_of(kData, [](const DataRow&, Spec&) {});
}

std::vector<std::string_view> data_names() {
  return row_names(kData);
}

DataName data_name(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {.kind = text};
  return {.kind = text.substr(0, colon), .argument = text.substr(colon + 1)};
}

void require_data(const std::string& text) {
  if (text == kOwn) return;
  const DataName asked = data_name(text);
  for (const DataRow& row : kData) {
    if (text == row.name) return;
    const DataName known = data_name(std::string(row.name));
    if (!known.argument.empty() && asked.kind == known.kind && !asked.argument.empty()) return;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) {
    throw Error(fmt::format("'{}' is a folder; did you mean '{}{}'?", text, kMnist, text));
  }
  throw Error(unknown_name_message("data set", text, data_names()));
}

std::optional<std::filesystem::path> mnist_folder(const std::string& data) {
  if (!data.starts_with(kMnist)) return std::nullopt;
  return data.substr(kMnist.size());
}

std::string mnist_data(const std::filesystem::path& folder) {
  return fmt::format("{}{}", kMnist, folder.string());
}

}  // namespace rubato
