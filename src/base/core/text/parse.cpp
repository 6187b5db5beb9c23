// Numbers are read by std::from_chars, which ignores the locale, and a text is accepted only if all
// of it is one number. Every message has the same three parts: the text, its flaw, and what would
// be accepted. NumberVisitor stores numbers in the order of the visits, without names. When it
// loads, missing numbers read as 0 until require_all_loaded() reports them, so visit_state()
// functions need no checks for them. nearest() suggests a name within an edit distance of two, or
// of a third of the word's length if that is more.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "text.hpp"

namespace rubato {

namespace {

// Infinity, with the sign, for a number too large for a double; 0 for other text, including numbers
// with a negative exponent, which are too close to 0.
double beyond(std::string_view text) {
  if (!is_number(text) || text.find("e-") != std::string_view::npos ||
      text.find("E-") != std::string_view::npos) {
    return 0;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return text.starts_with('-') ? -kInfinity : kInfinity;
}

// The reason why a text was rejected.
std::string_view flaw_of(std::string_view text, bool whole) {
  if (text.empty()) return "is empty";
  if (!is_number(text)) return "is not a number";
  if (whole && text.find_first_not_of("-0123456789") != std::string_view::npos) {
    return "is not a whole number";
  }
  return "is out of range";
}

}  // namespace

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

std::int64_t parse_whole(std::string_view text, std::int64_t min, std::int64_t max) {
  const auto value = parsed_number<std::int64_t>(text);
  if (value && *value >= min && *value <= max) return *value;
  throw_error("'{}' {}; accepted: {}", short_line(text), flaw_of(text, true),
              whole_range(min, max));
}

std::string whole_range(std::int64_t min, std::int64_t max) {
  return fmt::format("a whole number from {} to {}", min, max);
}

std::uint64_t parse_seed(std::string_view text) {
  if (const auto value = parsed_number<std::uint64_t>(text)) return *value;
  throw_error("'{}' {}; accepted: a whole number from 0 to {}", short_line(text),
              flaw_of(text, true), std::numeric_limits<std::uint64_t>::max());
}

std::int64_t count_of(double value) {
  if (value >= 0 && value <= 0x1p53 && value == std::floor(value)) {
    return static_cast<std::int64_t>(value);
  }
  throw_error("{} is not a count", value);
}

std::string RealRange::accepted_for(double value) const {
  if (max != kLargestReal || !(std::abs(value) > kLargestReal)) return std::string(words);
  if (min == -kLargestReal) return fmt::format("{}, from {} to {}", words, min, max);
  return value > 0 ? fmt::format("{}, up to {}", words, max) : std::string(words);
}

double parse_real(std::string_view text, const RealRange& range) {
  const auto value = parsed_number<double>(text);
  if (value && std::isfinite(*value) && range.holds(*value)) return *value;
  throw_error("'{}' {}; accepted: {}", short_line(text), flaw_of(text, false),
              range.accepted_for(value.value_or(beyond(text))));
}

void NumberVisitor::number(double& value) {
  if (!loading_) {
    saved_.push_back(value);
    return;
  }
  // If too few numbers are given, require_all_loaded() reports it in the end.
  value = loaded_ < values_.size() ? values_[loaded_] : 0;
  ++loaded_;
}

void NumberVisitor::count(std::int64_t& value) {
  auto real = static_cast<double>(value);
  number(real);
  if (loading_) value = count_of(real);
}

void NumberVisitor::flag(bool& value) {
  double real = value ? 1 : 0;
  number(real);
  value = real != 0;
}

void NumberVisitor::optional(std::optional<double>& value) {
  bool there = value.has_value();
  double real = value.value_or(0);
  flag(there);
  number(real);
  if (loading_) value = there ? std::optional(real) : std::nullopt;
}

void NumberVisitor::rest(std::vector<double>& values) {
  if (!loading_) {
    saved_.insert(saved_.end(), values.begin(), values.end());
    return;
  }
  const std::size_t begin = std::min(loaded_, values_.size());
  const std::span<const double> left = values_.subspan(begin);
  values.assign(left.begin(), left.end());
  loaded_ += left.size();
}

void NumberVisitor::require(bool good) const {
  if (loading_ && !good) throw_error("the state of {} is damaged", what_);
}

void NumberVisitor::require_all_loaded() const {
  if (loaded_ == values_.size()) return;
  throw_error("the state of {} has {} numbers; accepted: {}", what_, values_.size(), loaded_);
}

std::span<const double> NumberVisitor::next(std::size_t count) {
  loaded_ += count;
  return values_.subspan(loaded_ - count, count);
}

namespace {

// The optimal string alignment distance; only three rows of the table are kept.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates) {
  // Names are in lower case; capitals do not count as typing errors.
  const std::string word = lower_case(typed);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // A prefix of a name ("lin" of "linear") is as near as one typing error.
    const std::size_t distance = word.size() >= 2 && candidate.starts_with(word)
                                     ? std::size_t{1}
                                     : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_name_message(std::string_view kind, std::string_view word,
                                 std::span<const std::string_view> candidates, bool list_all) {
  std::string message = fmt::format("unknown {} '{}'", kind, short_line(word));
  if (const auto meant = nearest(word, candidates); !meant.empty()) {
    message += fmt::format("; did you mean '{}'?", meant);
  }
  if (list_all) {
    message += fmt::format("{}accepted: {}", message.ends_with('?') ? " " : "; ",
                           fmt::join(candidates, ", "));
  }
  return message;
}

bool parse_flag(std::string_view text) {
  if (text != "true" && text != "false") {
    throw_error("'{}' is neither true nor false; accepted: true, false", short_line(text));
  }
  return text == "true";
}

}  // namespace rubato
