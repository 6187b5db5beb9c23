#include "value_list.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "design.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMostValues = 10'000;
constexpr std::string_view kDots = "..";

std::vector<std::string> range_of(std::string_view text, std::size_t dots) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t first = parse_whole(text.substr(0, dots), 0, kLargest);
  const std::int64_t last = parse_whole(text.substr(dots + kDots.size()), 0, kLargest);
  if (last < first || last - first >= kMostValues) {
    throw_error("'{}' is not a range; accepted: such as 1..5, ascending, of up to {} numbers", text,
                kMostValues);
  }
  std::vector<std::string> values;
  for (std::int64_t i = first; i <= last; ++i) values.push_back(fmt::to_string(i));
  return values;
}

}  // namespace

std::vector<std::string> list_values(const RunOption& option, std::string_view text,
                                     const Extensions& own) {
  std::vector<std::string> values;
  if (option.has_commas) {
    values.emplace_back(text);
  } else {
    const auto continues = [](std::string_view value, std::string_view piece) {
      return !value.empty() && is_argument(piece);
    };
    for (std::string& piece : split_list(text, continues)) {
      const std::size_t dots = piece.find(kDots);
      if (piece.empty()) {
        throw_error("there is an empty value in '{}'; accepted: values with a comma between them",
                    text);
      }
      if (option.kind == OptionKind::whole && dots != std::string::npos) {
        std::ranges::move(range_of(piece, dots), std::back_inserter(values));
      } else {
        values.push_back(std::move(piece));
      }
    }
  }
  RunConfiguration read{.extensions = own};
  for (std::string& value : values) {
    option.set(read, value);
    // Canonical text, so that "0.10" and "0.1" are the same value.
    value = option.text(read).value_or(value);
  }
  return values;
}

std::vector<Assigned> list_assigned(std::string_view text) {
  const auto continues = [](std::string_view value, std::string_view /*piece*/) {
    return value.find(':') != std::string_view::npos;
  };
  std::vector<Assigned> all;
  for (const std::string& piece : split_list(text, continues)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == piece.size()) {
      throw_error("'{}' is not of the form NAME=VALUE; accepted: such as trace=128,rule=constant",
                  piece);
    }
    all.push_back({.name = piece.substr(0, equals), .value = piece.substr(equals + 1)});
  }
  return all;
}

namespace {

constexpr std::size_t kLongestSlug = 60;

std::string label_of(const RunOption& option, const std::string& value) {
  if (const std::string_view own = own_rule_name(value);
      option.name == kRuleOption && !own.empty()) {
    return std::string(own);
  }
  if (option.map_path == nullptr) return value;
  std::filesystem::path path;
  int files = 0;
  static_cast<void>(option.map_path(value, [&](const std::filesystem::path& file) {
    path = file;
    ++files;
    return file;
  }));
  // No file of several zones names them all.
  if (path.empty() || files > 1) return value;
  if (!path.has_filename()) path = path.parent_path();
  if (option.name == kFromOption) {
    return path.filename().string() + value.substr(value.rfind('@'));
  }
  const bool file = option.name == kTraceOption;
  const std::string name = file ? path.stem().string() : path.filename().string();
  return name.empty() ? value : name;
}

}  // namespace

std::vector<std::string> labels_of(std::string_view option,
                                   const std::vector<std::string>& values) {
  const RunOption& row = run_option(option);
  std::vector<std::string> labels =
      vector_of(values, [&](const std::string& value) { return label_of(row, value); });
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
