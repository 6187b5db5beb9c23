#include "labels.hpp"

#include <algorithm>
#include <filesystem>

#include "design.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

constexpr std::size_t kLongestSlug = 60;

std::string label_of(const RunOption& option, const std::string& value) {
  if (const std::string_view own = own_rule_name(value);
      option.name == kRuleOption && !own.empty()) {
    return std::string(own);
  }
  if (option.map_path == nullptr) return value;
  std::filesystem::path path;
  static_cast<void>(option.map_path(value, [&](const std::filesystem::path& file) {
    path = file;
    return file;
  }));
  if (path.empty()) return value;
  if (!path.has_filename()) path = path.parent_path();
  const bool file = option.name == kTraceOption;
  const std::string name = file ? path.stem().string() : path.filename().string();
  return name.empty() ? value : name;
}

}  // namespace

std::vector<std::string> labels_of(std::string_view option,
                                   const std::vector<std::string>& values) {
  const RunOption& row = run_option(option);
  std::vector<std::string> labels;
  labels.reserve(values.size());
  for (const std::string& value : values) labels.push_back(label_of(row, value));
  std::vector<std::string> unique = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::ranges::count(labels, labels[i]) > 1) unique[i] = values[i];
  }
  return unique;
}

std::string slug(std::string_view text) {
  constexpr std::string_view kKept =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
  std::string name(text.substr(0, kLongestSlug));
  for (char& letter : name) {
    if (kKept.find(letter) == std::string_view::npos) letter = '-';
  }
  return name;
}

}  // namespace rubato
