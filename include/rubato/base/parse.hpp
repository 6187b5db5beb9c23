#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/error.hpp>

namespace rubato {

/// The whole number that `text` writes in decimal digits. Throws Error, saying what is wrong with
/// the text and what would be accepted, unless it is one from `min` to `max`.
[[nodiscard]] std::int64_t parse_whole(std::string_view text, std::int64_t min, std::int64_t max);

/// The numbers that parse_whole() accepts, in words: "a whole number from 1 to 8".
[[nodiscard]] std::string whole_range(std::int64_t min, std::int64_t max);

/// Like parse_whole(), for all unsigned numbers of 64 bits.
[[nodiscard]] std::uint64_t parse_seed(std::string_view text);

/// The limit of the magnitude of numbers that have no other limit, so that results computed from
/// them stay finite.
inline constexpr double kLargestReal = 1e300;

/// The real numbers that an option accepts.
struct RealRange {
  double min = 0;
  double max = 0;
  bool includes_min = true;
  bool includes_max = true;
  /// The range in words: "a number from 0 to below 1"; a limit of kLargestReal is not mentioned.
  std::string_view words;

  [[nodiscard]] constexpr bool holds(double value) const {
    return (includes_min ? value >= min : value > min) &&
           (includes_max ? value <= max : value < max);
  }
  /// The range in words for whoever gave `value`; mentions kLargestReal if the value is beyond it.
  [[nodiscard]] std::string accepted_for(double value) const;
};

/// The finite number that `text` writes. Throws Error like parse_whole().
[[nodiscard]] double parse_real(std::string_view text, const RealRange& range);

/// True if `text` is a number of any kind, in range or not: "-1", "0.5", "1e999".
[[nodiscard]] bool is_number(std::string_view text);

/// `value` as a count, for counts stored among real numbers. Throws Error unless it is a whole
/// number from 0 to 2^53.
[[nodiscard]] std::int64_t count_of(double value);

/// Visits the numbers that an object has learned, one by one, and writes them to a list or reads
/// them from one. Saving and loading share one function, so they cannot differ:
///
///     void visit_state(NumberVisitor& numbers) {
///       numbers.number(factor_);
///       numbers.count(bad_epochs_);
///     }
///
/// numbers_of() and load_numbers() call it. Saving changes nothing; an object whose loading threw
/// must not be used any more.
class NumberVisitor {
 public:
  /// Creates a visitor that saves.
  NumberVisitor() = default;
  /// Creates a visitor that loads `values`. `what` names their owner in messages; both must outlive
  /// the visitor.
  NumberVisitor(std::span<const double> values, std::string_view what)
      : loading_(true), values_(values), what_(what) {}

  [[nodiscard]] bool loading() const { return loading_; }

  void number(double& value);
  /// A whole number from 0 to 2^53. Loading throws Error for any other.
  void count(std::int64_t& value);
  void flag(bool& value);
  /// Stored as two numbers: 1 or 0 for present or absent, and the value or 0.
  void optional(std::optional<double>& value);
  /// All remaining numbers, however many.
  void rest(std::vector<double>& values);
  /// An object with its own visit_state(), preceded by the count of its numbers.
  template <class Part>
  void part(Part& part);

  /// Throws Error for damaged numbers unless `good`, which the caller found of the loaded ones.
  void require(bool good) const;
  /// Throws Error unless exactly the given numbers have been loaded.
  void require_all_loaded() const;
  [[nodiscard]] const std::vector<double>& saved() const { return saved_; }

 private:
  [[nodiscard]] std::span<const double> next(std::size_t count);

  bool loading_ = false;
  std::vector<double> saved_;
  std::span<const double> values_;
  std::string_view what_;
  std::size_t loaded_ = 0;
};

/// The numbers that `part` has learned. Its visit_state() changes nothing when it saves, which
/// makes the const_cast safe.
template <class Part>
[[nodiscard]] std::vector<double> numbers_of(const Part& part) {
  NumberVisitor numbers;
  const_cast<Part&>(part).visit_state(numbers);
  return numbers.saved();
}

/// Restores `part` from saved numbers. Throws Error if they are not the numbers of `what`.
template <class Part>
void load_numbers(Part&& part, std::span<const double> values, std::string_view what) {
  NumberVisitor numbers(values, what);
  part.visit_state(numbers);
  numbers.require_all_loaded();
}

template <class Part>
void NumberVisitor::part(Part& part) {
  if (!loading_) {
    const std::vector<double> own = numbers_of(part);
    saved_.push_back(static_cast<double>(own.size()));
    saved_.insert(saved_.end(), own.begin(), own.end());
    return;
  }
  std::int64_t size = 0;
  count(size);
  require(loaded_ <= values_.size() && static_cast<std::size_t>(size) <= values_.size() - loaded_);
  load_numbers(part, next(static_cast<std::size_t>(size)), what_);
}

/// The candidate nearest to `word` by edit distance (insert, delete, replace, swap of neighbours),
/// or an empty view if none is near enough to be meant.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

/// "unknown <kind> 'word'; did you mean 'x'? Accepted: a, b, c". The accepted list is left out when
/// `list_all` is false.
[[nodiscard]] std::string unknown_name_message(std::string_view kind, std::string_view word,
                                               std::span<const std::string_view> candidates,
                                               bool list_all = true);

/// One value of an enumeration and the name by which users know it.
template <class Enum>
struct Choice {
  Enum value;
  std::string_view name;
};

/// The name of `value`; empty if the table does not list it.
template <class Enum, std::size_t N>
[[nodiscard]] constexpr std::string_view choice_name(const std::array<Choice<Enum>, N>& choices,
                                                     Enum value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

/// All the names, in the order of the table.
template <class Enum, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> choice_name_list(
    const std::array<Choice<Enum>, N>& choices) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = choices[i].name;
  return names;
}

/// The names joined as "a|b|c", or with another separator.
template <class Enum, std::size_t N>
[[nodiscard]] std::string choice_names(const std::array<Choice<Enum>, N>& choices,
                                       std::string_view between = "|") {
  std::string names;
  for (const auto& choice : choices) {
    names.append(names.empty() ? "" : between).append(choice.name);
  }
  return names;
}

/// The value called `name`. Throws Error, with the nearest and all accepted names, if there is no
/// such name; `kind` says what was to be named ("rule", "assignment").
template <class Enum, std::size_t N>
[[nodiscard]] Enum parse_choice(std::string_view kind, std::string_view name,
                                const std::array<Choice<Enum>, N>& choices) {
  for (const auto& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  throw Error(unknown_name_message(kind, name, choice_name_list(choices)));
}

/// Parses "true" or "false". Throws Error for other text.
[[nodiscard]] bool parse_flag(std::string_view text);

}  // namespace rubato
