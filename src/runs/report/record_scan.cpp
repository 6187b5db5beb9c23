// A million lines are opened in two seconds only if a line takes two microseconds, and building a
// JSON document of it takes five times as long. So the scanner knows what a line looks like: its
// keys come in the order of the columns, and it compares each one with the column that is next. It
// accepts less than JSON and never more: whatever it does not expect ends the scan, and the
// document decides what the text means and which error it has.

#include "record_scan.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

namespace rubato {

namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// A whole number with so many digits is a count without a doubt.
constexpr std::ptrdiff_t kMostDigits = 15;

class RecordScanner {
 public:
  RecordScanner(std::span<const ColumnInfo> columns, std::string_view json)
      : columns_(columns), at_(json.data()), end_(json.data() + json.size()) {}

  bool scan(Cells& cells) { return take_members({}, cells) && at_ == end_; }

 private:
  [[nodiscard]] bool is_at(char letter) const { return at_ != end_ && *at_ == letter; }
  bool take(char letter) {
    if (!is_at(letter)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // The functions below return false where the text is not as expected.

  // Passes the members of an object, or the items of an array, to `take_one`.
  template <class TakeOne>
  bool take_list(char open, char close, const TakeOne& take_one) {
    if (!take(open)) return false;
    if (take(close)) return true;
    do {
      if (!take_one()) return false;
    } while (take(','));
    return take(close);
  }

  // The text between two quotation marks, as it is written.
  bool take_quoted(std::string_view& text) {
    if (!take('"')) return false;
    text = std::string_view(at_, end_);
    text = text.substr(0, text.find('"'));
    at_ += text.size();
    return take('"');
  }

  // A plain text means what it says: it has printable ASCII letters only, and no escapes.
  static bool is_plain(std::string_view text) {
    return std::ranges::all_of(
        text, [](char letter) { return letter >= ' ' && letter <= '~' && letter != '\\'; });
  }

  bool take_text(std::string_view& text) { return take_quoted(text) && is_plain(text); }

  // The end of the digits that are next. JSON has no leading zeros: there are no digits then.
  [[nodiscard]] const char* end_of_digits(const char* begin) const {
    const char* end = begin;
    while (end != end_ && is_digit(*end)) ++end;
    return end - begin > 1 && *begin == '0' ? begin : end;
  }

  // The digits that end there are the whole number if no fraction and no exponent follows.
  [[nodiscard]] bool is_whole_before(const char* end) const {
    return end == end_ || (*end != '.' && *end != 'e' && *end != 'E');
  }

  bool take_whole(std::int64_t& whole) {
    const char* const end = end_of_digits(at_);
    if (end == at_ || end - at_ > kMostDigits || !is_whole_before(end)) return false;
    for (whole = 0; at_ != end; ++at_) whole = 10 * whole + (*at_ - '0');
    return true;
  }

  // std::from_chars() also accepts what is no number in JSON, such as .5 and inf, which is refused
  // first.
  bool take_real(double& real) {
    if (take("null")) {
      real = std::numeric_limits<double>::quiet_NaN();
      return true;
    }
    const char* const digits = is_at('-') ? at_ + 1 : at_;
    const char* const end = end_of_digits(digits);
    if (end == digits) return false;
    // A whole number of JSON that is -0 is 0.
    if (digits != at_ && is_whole_before(end)) return false;
    if (end != end_ && *end == '.' && (end + 1 == end_ || !is_digit(end[1]))) return false;
    const auto [next, error] = std::from_chars(at_, end_, real);
    at_ = next;
    return error == std::errc();
  }

  bool take_numbers(std::vector<NamedNumber>& numbers) {
    const bool all = take_list('{', '}', [&] {
      std::string_view name;
      double value = 0;
      if (!take_text(name) || !take(':') || !take_real(value)) return false;
      numbers.push_back({std::string(name), value});
      return true;
    });
    // Documents have their members in the order of their names, each once.
    std::ranges::sort(numbers, {}, &NamedNumber::name);
    return all && std::ranges::adjacent_find(numbers, {}, &NamedNumber::name) == numbers.end();
  }

  bool take_value(const ColumnInfo& column, Cell& cell) {
    const bool may_be_nan = column.type == ColumnType::real && !column.null_if_none;
    if (!may_be_nan && is_at('n')) return take("null");
    switch (column.type) {
      case ColumnType::whole:
        return take_whole(cell.emplace<std::int64_t>());
      case ColumnType::real:
        return take_real(cell.emplace<double>());
      case ColumnType::flag:
        cell = is_at('t');
        return take("true") || take("false");
      case ColumnType::text: {
        std::string_view text;
        const bool is_text = take_text(text);
        cell.emplace<std::string>(text);
        return is_text;
      }
      case ColumnType::wholes: {
        auto& wholes = cell.emplace<std::vector<std::int64_t>>();
        return take_list('[', ']', [&] { return take_whole(wholes.emplace_back()); });
      }
      case ColumnType::numbers:
        return take_numbers(cell.emplace<std::vector<NamedNumber>>());
      case ColumnType::texts:
        break;
    }
    return false;
  }

  // The value of a member that no column has, such as `kind`.
  bool skip_value() {
    std::string_view text;
    double number = 0;
    if (is_at('"')) return take_text(text);
    return take("true") || take("false") || take_real(number);
  }

  // A key that is expected. Takes nothing if another one is next.
  bool take_key(std::string_view key) {
    const std::string_view rest(at_, end_);
    const std::size_t size = key.size();
    if (rest.size() < size + 3 || rest[size + 1] != '"' || rest[size + 2] != ':' ||
        rest[0] != '"' || rest.substr(1, size) != key) {
      return false;
    }
    at_ += size + 3;
    return true;
  }

  // Members of the record itself, or of an object in it that has columns.
  bool take_members(std::string_view object, Cells& cells) {
    return take_list('{', '}', [&] {
      if (next_ < std::ssize(columns_)) {
        const auto index = static_cast<std::size_t>(next_);
        if (columns_[index].object == object && take_key(columns_[index].json_key())) {
          ++next_;
          return take_value(columns_[index], cells[index]);
        }
      }
      std::string_view key;
      // An empty key would be taken for the object of the columns that are in none.
      if (!take_quoted(key) || key.empty() || !take(':')) return false;
      // Each line of metrics has it, and no column has this name.
      if (key == "kind") return skip_value();
      const auto is_wanted = [&](const ColumnInfo& column) {
        return column.json_key() == key ? column.object == object
                                        : object.empty() && column.object == key;
      };
      const auto next = columns_.begin() + next_;
      const auto found = std::find_if(next, columns_.end(), is_wanted);
      if (found == columns_.end()) {
        // A column that should have come before is a second one, or in another order.
        return is_plain(key) && std::none_of(columns_.begin(), next, is_wanted) && skip_value();
      }
      next_ = found - columns_.begin();
      if (found->object == object) {
        return take_value(*found, cells[static_cast<std::size_t>(next_++)]);
      }
      if (!take_members(key, cells)) return false;
      while (next_ < std::ssize(columns_) &&
             columns_[static_cast<std::size_t>(next_)].object == key)
        ++next_;
      return true;
    });
  }

  std::span<const ColumnInfo> columns_;
  const char* at_;
  const char* end_;
  // Index of the first column that may come.
  std::ptrdiff_t next_ = 0;
};

}  // namespace

std::optional<Cells> scanned_cells(std::span<const ColumnInfo> columns, std::string_view json) {
  Cells cells(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].usual) cells[i] = *columns[i].usual;
  }
  if (!RecordScanner(columns, json).scan(cells)) return std::nullopt;
  return cells;
}

}  // namespace rubato
