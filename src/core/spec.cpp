#include <algorithm>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>

namespace rubato {

namespace {

// Takes what is before the first `separator` from the front of `text`, and the separator.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

}  // namespace

Spec::Spec(std::string_view text) {
  const bool has_arguments = text.find(':') != std::string_view::npos;
  name_ = take_part(text, ':');
  if (!has_arguments) return;
  const std::string_view all = text;
  do {
    std::string_view value = take_part(text, ',');
    const bool named = value.find('=') != std::string_view::npos;
    const std::string_view key = take_part(value, '=');
    if (!named || key.empty() || value.empty()) {
      throw Error(fmt::format("'{}:{}' is malformed; accepted: {}:NAME=VALUE,NAME=VALUE", name_,
                              all, name_));
    }
    if (has(key)) throw Error(fmt::format("{}'{}' is given twice", place(), key));
    arguments_.push_back({.key = std::string(key), .value = std::string(value)});
  } while (!text.empty());
}

bool Spec::has(std::string_view key) const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [key](const Argument& argument) { return argument.key == key; });
}

const std::string* Spec::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = std::find_if(arguments_.begin(), arguments_.end(),
                                  [key](const Argument& argument) { return argument.key == key; });
  return found == arguments_.end() ? nullptr : &found->value;
}

double Spec::real(std::string_view key, double fallback, const RealRange& range) {
  const std::string* const value = find(key);
  if (value == nullptr) return fallback;
  try {
    return parse_real(*value, range);
  } catch (const Error& error) {
    reject(key, error.what());
  }
}

std::int64_t Spec::whole(std::string_view key, std::int64_t fallback, std::int64_t min,
                         std::int64_t max) {
  const std::string* const value = find(key);
  if (value == nullptr) return fallback;
  try {
    return parse_whole(*value, min, max);
  } catch (const Error& error) {
    reject(key, error.what());
  }
}

bool Spec::flag(std::string_view key, bool fallback) {
  const std::string* const value = find(key);
  if (value == nullptr) return fallback;
  try {
    return parse_flag(*value);
  } catch (const Error& error) {
    reject(key, error.what());
  }
}

std::string Spec::text(std::string_view key, std::string_view fallback) {
  const std::string* const value = find(key);
  return value == nullptr ? std::string(fallback) : *value;
}

std::vector<double> Spec::reals(std::string_view key, const RealRange& range) {
  return numbers<double>(key, [&](std::string_view part) { return parse_real(part, range); });
}

std::vector<std::int64_t> Spec::wholes(std::string_view key, std::int64_t min, std::int64_t max) {
  return numbers<std::int64_t>(key,
                               [&](std::string_view part) { return parse_whole(part, min, max); });
}

template <class T, class Parse>
std::vector<T> Spec::numbers(std::string_view key, const Parse& parse) {
  const std::string* const value = find(key);
  if (value == nullptr) return {};
  std::vector<T> numbers;
  try {
    std::string_view rest = *value;
    do {
      numbers.push_back(parse(take_part(rest, '/')));
    } while (!rest.empty());
  } catch (const Error& error) {
    reject(key, error.what());
  }
  return numbers;
}

void Spec::require(std::string_view key, std::string_view example) const {
  if (has(key)) return;
  throw Error(fmt::format("{} needs a '{}'; accepted: {}:{}={}", name_, key, name_, key, example));
}

void Spec::refuse(std::string_view key, std::string_view why) const {
  if (has(key)) reject(key, why);
}

void Spec::finish() const {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const Argument& argument : arguments_) {
    if (std::find(known.begin(), known.end(), argument.key) != known.end()) continue;
    if (known.empty()) {
      throw Error(fmt::format("{} takes no arguments, but has '{}'", name_, argument.key));
    }
    const std::string kind = name_.empty() ? "argument" : fmt::format("argument of {}", name_);
    throw Error(unknown_name_message(kind, argument.key, known));
  }
}

void Spec::reject(std::string_view key, std::string_view message) const {
  throw Error(fmt::format("{}{}: {}", place(), key, message));
}

std::string Spec::place() const {
  return name_.empty() ? std::string() : name_ + ": ";
}

}  // namespace rubato
