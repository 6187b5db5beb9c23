// The constructor of Spec only splits the text; values stay text until their owner reads them,
// because only the owner knows their kinds and ranges. All typed readers go through read(), which
// records the description of the argument, finds its text, parses it, and puts the names of the
// choice and of the argument before any error. A Spec made by example() contains no arguments, and
// required ones then read their example: the function that reads the arguments of a strategy
// therefore also lists them.

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "text.hpp"

namespace rubato {

namespace {

// Takes the text before the first `separator`, and the separator, from the front of `text`.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

auto real_in(const RealRange& range) {
  return [&range](std::string_view text) { return parse_real(text, range); };
}

auto whole_in(std::int64_t min, std::int64_t max) {
  return [min, max](std::string_view text) { return parse_whole(text, min, max); };
}

// A parser of numbers with '/' between them.
template <class Parse>
auto list_of(Parse parse) {
  return [parse](std::string_view text) { return vector_of(split_at(text, '/'), parse); };
}

std::string several(std::string_view accepted) {
  return fmt::format("{}, or several with / between them", accepted);
}

Argument argument_of(std::string_view name, ArgumentKind kind, std::string_view accepted,
                     std::string fallback) {
  return {.name = std::string(name),
          .kind = kind,
          .accepted = std::string(accepted),
          .fallback = std::move(fallback)};
}

Argument argument_of(std::string_view name, ArgumentKind kind, std::string_view accepted,
                     Required required) {
  Argument argument = argument_of(name, kind, accepted, std::string());
  argument.example = required.example;
  return argument;
}

Argument argument_of(std::string_view name, ArgumentKind kind, std::string_view accepted,
                     Unset unset) {
  Argument argument = argument_of(name, kind, accepted, std::string());
  argument.unset = unset.meaning;
  return argument;
}

}  // namespace

Spec::Spec(std::string_view text) {
  const bool has_arguments = text.find(':') != std::string_view::npos;
  name_ = take_part(text, ':');
  if (!has_arguments) return;
  for (std::string_view value : split_at(text, ',')) {
    const bool named = value.find('=') != std::string_view::npos;
    const std::string_view key = take_part(value, '=');
    if (!named || key.empty() || value.empty()) {
      const std::string before = name_.empty() ? "" : name_ + ":";
      throw_error("'{0}{1}' is malformed; accepted: {0}NAME=VALUE,NAME=VALUE", short_line(before),
                  short_line(text));
    }
    if (has(key)) throw_error("{}'{}' is given twice", place(), short_line(key));
    given_.push_back({.key = std::string(key), .value = std::string(value)});
  }
}

Spec Spec::example(std::string_view name) {
  // The name is not parsed, because one with a part to fill in ("mnist:DIR") has a colon, too.
  Spec spec("");
  spec.name_ = name;
  spec.example_ = true;
  return spec;
}

bool Spec::has(std::string_view key) const {
  return find(key) != nullptr;
}

const std::string* Spec::find(std::string_view key) const {
  const auto found = std::ranges::find(given_, key, &Given::key);
  return found == given_.end() ? nullptr : &found->value;
}

template <class Parse>
auto Spec::read(Argument argument, const Parse& parse)
    -> std::optional<decltype(parse(std::string_view()))> {
  if (std::ranges::find(asked_, argument.name, &Argument::name) == asked_.end()) {
    asked_.push_back(argument);
  }
  const std::string* text = find(argument.name);
  if (text == nullptr) {
    if (argument.example.empty()) return std::nullopt;
    if (!example_) {
      throw_error("{} needs a '{}'; accepted: {}:{}={}", name_, argument.name, name_, argument.name,
                  argument.example);
    }
    text = &argument.example;
  }
  try {
    return parse(*text);
  } catch (const Error& error) {
    reject(argument.name, error.what());
  }
}

double Spec::real(std::string_view key, double fallback, const RealRange& range) {
  return read(argument_of(key, ArgumentKind::real, range.words, fmt::to_string(fallback)),
              real_in(range))
      .value_or(fallback);
}

double Spec::real(std::string_view key, Required required, const RealRange& range) {
  return *read(argument_of(key, ArgumentKind::real, range.words, required), real_in(range));
}

std::optional<double> Spec::real(std::string_view key, Unset unset, const RealRange& range) {
  return read(argument_of(key, ArgumentKind::real, range.words, unset), real_in(range));
}

std::int64_t Spec::whole(std::string_view key, std::int64_t fallback, std::int64_t min,
                         std::int64_t max) {
  return read(
             argument_of(key, ArgumentKind::whole, whole_range(min, max), fmt::to_string(fallback)),
             whole_in(min, max))
      .value_or(fallback);
}

std::int64_t Spec::whole(std::string_view key, Required required, std::int64_t min,
                         std::int64_t max) {
  return *read(argument_of(key, ArgumentKind::whole, whole_range(min, max), required),
               whole_in(min, max));
}

std::optional<std::int64_t> Spec::whole(std::string_view key, Unset unset, std::int64_t min,
                                        std::int64_t max) {
  return read(argument_of(key, ArgumentKind::whole, whole_range(min, max), unset),
              whole_in(min, max));
}

bool Spec::flag(std::string_view key, bool fallback) {
  return read(argument_of(key, ArgumentKind::flag, "true, false", fmt::to_string(fallback)),
              parse_flag)
      .value_or(fallback);
}

std::vector<double> Spec::reals(std::string_view key, Required required, const RealRange& range) {
  return *read(argument_of(key, ArgumentKind::reals, several(range.words), required),
               list_of(real_in(range)));
}

std::optional<std::vector<double>> Spec::reals(std::string_view key, Unset unset,
                                               const RealRange& range) {
  return read(argument_of(key, ArgumentKind::reals, several(range.words), unset),
              list_of(real_in(range)));
}

std::vector<std::int64_t> Spec::wholes(std::string_view key,
                                       const std::vector<std::int64_t>& fallback, std::int64_t min,
                                       std::int64_t max) {
  return read(argument_of(key, ArgumentKind::wholes, several(whole_range(min, max)),
                          fmt::format("{}", fmt::join(fallback, "/"))),
              list_of(whole_in(min, max)))
      .value_or(fallback);
}

std::string Spec::text(std::string_view key, Required required, std::string_view accepted) {
  return *read(argument_of(key, ArgumentKind::text, accepted, required),
               [](std::string_view text) { return std::string(text); });
}

std::optional<std::string> Spec::text(std::string_view key, Unset unset,
                                      std::string_view accepted) {
  return read(argument_of(key, ArgumentKind::text, accepted, unset),
              [](std::string_view text) { return std::string(text); });
}

std::string Spec::one_of(std::string_view key, std::string_view fallback,
                         std::span<const std::string_view> names) {
  return read_name(key, {.fallback = std::string(fallback)}, names);
}

std::string Spec::read_name(std::string_view key, Argument argument,
                            std::span<const std::string_view> names) {
  argument.name = key;
  argument.kind = ArgumentKind::choice;
  argument.accepted = fmt::format("{}", fmt::join(names, ", "));
  argument.choices.assign(names.begin(), names.end());
  const std::string fallback = argument.fallback;
  const auto known = [names](std::string_view text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return std::string(text);
    throw Error(unknown_name_message("value", text, names));
  };
  return read(std::move(argument), known).value_or(fallback);
}

void Spec::refuse(std::string_view key, std::string_view why) const {
  if (has(key)) reject(key, why);
}

void Spec::finish() const {
  const auto known = vector_of<std::string_view>(asked_, &Argument::name);
  for (const Given& given : given_) {
    if (std::find(known.begin(), known.end(), given.key) != known.end()) continue;
    if (known.empty()) {
      throw_error("{} takes no arguments, but has '{}'", name_, short_line(given.key));
    }
    const std::string kind = name_.empty() ? "argument" : fmt::format("argument of {}", name_);
    throw Error(unknown_name_message(kind, given.key, known));
  }
}

void Spec::reject(std::string_view key, std::string_view message) const {
  throw_error("{}{}: {}", place(), key, message);
}

std::string Spec::place() const {
  return name_.empty() ? std::string() : name_ + ": ";
}

void rethrow_of_maker(std::string_view kind, std::string_view name) {
  const auto failed = [&](std::string_view what) {
    return Error(fmt::format("{} {} cannot be made: {}", kind, name, what));
  };
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("its maker threw something that is not a std::exception");
  }
}

void require_addable(std::string_view kind, std::string_view name, bool has_maker) {
  if (name.empty() || name.find_first_of(":,+= ") != std::string_view::npos) {
    throw_error(
        "'{}' is not a valid name of a {}; accepted: one without any of ':', ',', '+', '=' and "
        "blanks",
        name, kind);
  }
  if (!has_maker) {
    throw_error("nothing makes the {} '{}'; accepted: any maker but an empty one", kind, name);
  }
}

}  // namespace rubato
