#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/faults.hpp>
#include <rubato/loop/optimizer.hpp>

#include "loop/train/step/rate_factors.hpp"
#include "run_option.hpp"

namespace rubato {

/// Parses "core=K,step=N" or "core=K,step=N,substep=M", several joined with '+'. Empty text means
/// none.
[[nodiscard]] std::vector<Fault> parse_faults(const std::string& text);

/// Parses "rate=X" or "rate=X,seed=N" as the random part of FaultOptions.
[[nodiscard]] FaultOptions parse_random_faults(const std::string& text);

/// Parses "core=K,factor=F", several joined with '+'.
[[nodiscard]] std::vector<Straggler> parse_stragglers(const std::string& text);

/// The steps that --timeline records.
struct TimelineSteps {
  StepIndex first{};
  StepIndex last{std::numeric_limits<std::int64_t>::max()};
};

/// Parses "all" or "steps=A..B", both counted from 1 and included. Empty text means "all". Throws
/// Error.
[[nodiscard]] TimelineSteps parse_timeline(const std::string& text);

}  // namespace rubato

// Defines Parsed<T>::parse() for a type whose text another function reads; `parsed` is an
// expression of `text` and `own`.
#define RUBATO_PARSE(parsed, ...)                                        \
  template <>                                                            \
  std::shared_ptr<const __VA_ARGS__> Parsed<__VA_ARGS__>::parse(         \
      const std::string& text, [[maybe_unused]] const Extensions& own) { \
    return std::make_shared<const __VA_ARGS__>(parsed);                  \
  }

// Readings convert options from text and to text: the READING of run_options.def. Each has
//
//   kKind          its OptionKind
//   accepted()     what it accepts, in a few words; empty if only read() can say
//   value()        the placeholder of its value in descriptions, if the row has none
//   read(text)     the value; throws Error with what is wrong and what would be accepted
//   write(value)   text that read() reads back to the same value

namespace rubato::reading {

/// Reads "true" or "false".
struct Flag {
  static constexpr OptionKind kKind = OptionKind::flag;
  [[nodiscard]] static std::string accepted() { return "true, false"; }
  [[nodiscard]] static std::string value() { return {}; }
  [[nodiscard]] static bool read(const std::string& text) { return parse_flag(text); }
  [[nodiscard]] static std::string write(bool value) { return value ? "true" : "false"; }
};

/// A whole number from `min` to `max`.
struct Whole {
  static constexpr OptionKind kKind = OptionKind::whole;
  std::int64_t min = 0;
  std::int64_t max = 0;

  [[nodiscard]] std::string accepted() const { return whole_range(min, max); }
  [[nodiscard]] static std::string value() { return "N"; }
  [[nodiscard]] std::int64_t read(const std::string& text) const {
    return parse_whole(text, min, max);
  }
  [[nodiscard]] static std::string write(std::int64_t value) { return fmt::to_string(value); }
};

/// A whole number of 64 bits without a sign.
struct Whole64 {
  static constexpr OptionKind kKind = OptionKind::whole;
  [[nodiscard]] static std::string accepted() {
    return fmt::format("a whole number from 0 to {}", std::numeric_limits<std::uint64_t>::max());
  }
  [[nodiscard]] static std::string value() { return "N"; }
  [[nodiscard]] static std::uint64_t read(const std::string& text) { return parse_seed(text); }
  [[nodiscard]] static std::string write(std::uint64_t value) { return fmt::to_string(value); }
};

/// A number in a range.
struct Real {
  static constexpr OptionKind kKind = OptionKind::real;
  RealRange range;

  [[nodiscard]] std::string accepted() const { return std::string(range.words); }
  [[nodiscard]] static std::string value() { return "X"; }
  [[nodiscard]] double read(const std::string& text) const { return parse_real(text, range); }
  [[nodiscard]] static std::string write(double value) { return fmt::to_string(value); }
};

/// Reads one of an enumeration's values; `what` is its name in messages.
template <class Enum, std::size_t N>
struct Choices {
  static constexpr OptionKind kKind = OptionKind::text;
  std::string_view what;
  std::array<Choice<Enum>, N> choices;

  [[nodiscard]] std::string accepted() const { return choice_names(choices, ", "); }
  [[nodiscard]] std::string value() const { return choice_names(choices); }
  [[nodiscard]] Enum read(const std::string& text) const {
    return parse_choice(what, text, choices);
  }
  [[nodiscard]] std::string write(Enum value) const {
    return std::string(choice_name(choices, value));
  }
};

/// Keeps text as it is; the option's type may parse it.
template <OptionKind Kind>
struct Text {
  static constexpr OptionKind kKind = Kind;
  [[nodiscard]] static std::string accepted() { return {}; }
  [[nodiscard]] static std::string value() { return {}; }
  [[nodiscard]] static const std::string& read(const std::string& text) { return text; }
  [[nodiscard]] static std::string write(const std::string& value) { return value; }
  [[nodiscard]] static std::string write(const std::filesystem::path& value) {
    return value.string();
  }
  template <class T>
  [[nodiscard]] static std::string write(const Parsed<T>& value) {
    return value.text();
  }
};

/// Reads "head.*=10,stem.*=0".
struct RateFactors {
  static constexpr OptionKind kKind = OptionKind::text;
  [[nodiscard]] static std::string accepted() { return {}; }
  [[nodiscard]] static std::string value() { return "PATTERN=FACTOR,..."; }
  [[nodiscard]] static std::vector<RateFactor> read(const std::string& text) {
    return parse_rate_factors(text);
  }
  [[nodiscard]] static std::string write(const std::vector<RateFactor>& factors) {
    return to_text(factors);
  }
};

/// Reads "98" or "98,best".
struct Accuracy {
  static constexpr OptionKind kKind = OptionKind::text_or_number;
  [[nodiscard]] static std::string accepted() { return std::string(kPercent.words); }
  [[nodiscard]] static std::string value() { return "P[,best]"; }
  [[nodiscard]] static AccuracyTarget read(const std::string& text) {
    const bool best = text.ends_with(kBest);
    const std::string percent = text.substr(0, text.size() - (best ? kBest.size() : 0));
    return {.percent = parse_real(percent, kPercent), .best = best};
  }
  [[nodiscard]] static std::string write(const AccuracyTarget& target) {
    return fmt::format("{}{}", target.percent, target.best ? kBest : std::string_view{});
  }

 private:
  static constexpr std::string_view kBest = ",best";
  static constexpr RealRange kPercent{
      0, 100, false, true, "a number above 0 and up to 100 (percent), and ',best' after it or not"};
};

/// Reads "0.1" or "0.1,seed=3".
struct Share {
  static constexpr OptionKind kKind = OptionKind::text_or_number;
  [[nodiscard]] static std::string accepted() { return std::string(kRange.words); }
  [[nodiscard]] static std::string value() { return "X[,seed=N]"; }
  [[nodiscard]] static HeldOut read(const std::string& text) {
    const std::size_t seed = text.find(kSeed);
    HeldOut held{.share = parse_real(text.substr(0, seed), kRange)};
    if (seed != std::string::npos) held.seed = parse_seed(text.substr(seed + kSeed.size()));
    return held;
  }
  [[nodiscard]] static std::string write(const HeldOut& held) {
    if (held.seed == 0) return fmt::to_string(held.share);
    return fmt::format("{}{}{}", held.share, kSeed, held.seed);
  }

 private:
  static constexpr std::string_view kSeed = ",seed=";
  static constexpr RealRange kRange{0, 1, false, false,
                                    "a number above 0 and below 1, and ',seed=N' after it or not"};
};

// The following functions are the names that rows use.

[[nodiscard]] constexpr Flag flag() {
  return {};
}
[[nodiscard]] constexpr Whole whole(std::int64_t min, std::int64_t max) {
  return {.min = min, .max = max};
}
[[nodiscard]] constexpr Whole64 whole_64() {
  return {};
}
[[nodiscard]] constexpr Real real(const RealRange& range) {
  return {.range = range};
}
template <class Enum, std::size_t N>
[[nodiscard]] constexpr Choices<Enum, N> choice(std::string_view what,
                                                const std::array<Choice<Enum>, N>& choices) {
  return {.what = what, .choices = choices};
}
[[nodiscard]] constexpr Text<OptionKind::text> text() {
  return {};
}
[[nodiscard]] constexpr Text<OptionKind::text_or_number> text_or_number() {
  return {};
}
[[nodiscard]] constexpr RateFactors rate_factors_text() {
  return {};
}
[[nodiscard]] constexpr Accuracy accuracy_target() {
  return {};
}
[[nodiscard]] constexpr Share held_out() {
  return {};
}

}  // namespace rubato::reading
