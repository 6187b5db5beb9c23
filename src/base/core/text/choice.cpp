#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>

namespace rubato {

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
  std::string word(typed);
  std::ranges::transform(word, word.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
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
  std::string message = fmt::format("unknown {} '{}'", kind, word);
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
    throw Error(fmt::format("'{}' is neither true nor false; accepted: true, false", text));
  }
  return text == "true";
}

}  // namespace rubato
