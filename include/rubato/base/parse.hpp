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
/// the text and what would be accepted, when it is none from `min` to `max`.
[[nodiscard]] std::int64_t parse_whole(std::string_view text, std::int64_t min, std::int64_t max);

/// What parse_whole() accepts, in words: "a whole number from 1 to 8".
[[nodiscard]] std::string whole_range(std::int64_t min, std::int64_t max);

/// Like parse_whole() for the whole range of 64 bits.
[[nodiscard]] std::uint64_t parse_seed(std::string_view text);

/// What numbers without another limit are at most, or from -kLargestReal to it: what is computed
/// with them stays finite.
inline constexpr double kLargestReal = 1e300;

/// Which real numbers an option takes.
struct RealRange {
  double min = 0;
  double max = 0;
  bool includes_min = true;
  bool includes_max = true;
  /// The range in words: "a number from 0 to below 1". kLargestReal goes without saying.
  std::string_view words;

  [[nodiscard]] constexpr bool holds(double value) const {
    return (includes_min ? value >= min : value > min) &&
           (includes_max ? value <= max : value < max);
  }
  /// The words for whoever gave `value`, which does not go without saying beyond kLargestReal.
  [[nodiscard]] std::string accepted_for(double value) const;
};

/// The finite number that `text` writes. Throws Error like parse_whole().
[[nodiscard]] double parse_real(std::string_view text, const RealRange& range);

/// Whether `text` is a number of any kind, in range or not: "-1", "0.5", "1e999".
[[nodiscard]] bool is_number(std::string_view text);

/// `value` as a count; throws Error when it is no whole number from 0 to 2^53. For counts that are
/// kept among real numbers.
[[nodiscard]] std::int64_t count_of(double value);

/// Goes through all that a part has learned, number by number: into a list, or out of one. So what
/// is saved and what is loaded cannot differ:
///
///     void visit_state(NumberVisitor& numbers) {
///       numbers.number(factor_);
///       numbers.count(bad_epochs_);
///     }
///
/// numbers_of() and load_numbers() are those who call it. Saving changes nothing; where loading
/// throws, the part is of no further use.
class NumberVisitor {
 public:
  /// Saves.
  NumberVisitor() = default;
  /// Loads `values`, which outlive it as `what` does: of whom they are, for messages.
  NumberVisitor(std::span<const double> values, std::string_view what)
      : loading_(true), values_(values), what_(what) {}

  [[nodiscard]] bool loading() const { return loading_; }

  void number(double& value);
  /// A whole number from 0 to 2^53. Throws Error where another one is loaded.
  void count(std::int64_t& value);
  void flag(bool& value);
  /// Two numbers: whether there is one, and that or 0.
  void optional(std::optional<double>& value);
  /// All numbers that follow, however many.
  void rest(std::vector<double>& values);
  /// A part with a visit_state() of its own, behind how many numbers it has.
  template <class Part>
  void part(Part& part);

  /// Throws Error for damaged numbers where what has been loaded is not good.
  void require(bool good) const;
  /// Throws Error where more or fewer numbers were given than have been loaded.
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

/// What `part` has learned. Its visit_state() changes nothing there, and so may be called although
/// it is no const function.
template <class Part>
[[nodiscard]] std::vector<double> numbers_of(const Part& part) {
  NumberVisitor numbers;
  const_cast<Part&>(part).visit_state(numbers);
  return numbers.saved();
}

/// Makes `part` go on from there. Throws Error for what are no numbers of `what`.
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
/// or an empty view when none is near enough to be what was meant.
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

/// The name of `value`; empty when the table does not list it.
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

/// "a|b|c", or with something else between the names.
template <class Enum, std::size_t N>
[[nodiscard]] std::string choice_names(const std::array<Choice<Enum>, N>& choices,
                                       std::string_view between = "|") {
  std::string names;
  for (const auto& choice : choices) {
    names.append(names.empty() ? "" : between).append(choice.name);
  }
  return names;
}

/// The value called `name`. Throws Error, naming the nearest and all accepted names, when there is
/// none; `kind` says what was to be named ("rule", "assignment").
template <class Enum, std::size_t N>
[[nodiscard]] Enum parse_choice(std::string_view kind, std::string_view name,
                                const std::array<Choice<Enum>, N>& choices) {
  for (const auto& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  throw Error(unknown_name_message(kind, name, choice_name_list(choices)));
}

/// "true" or "false". Throws Error for other text.
[[nodiscard]] bool parse_flag(std::string_view text);

}  // namespace rubato
