#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>

#include "core/memory.hpp"
#include "data/data_files.hpp"
#include "trace/csv_line.hpp"
#include "trace/field.hpp"
#include "trace/text_reader.hpp"

namespace rubato {

namespace {

using detail::excerpt;
using std::filesystem::path;

// Of one column. More are no categories but names, dates or identifiers.
constexpr std::size_t kMostCategories = 1000;
constexpr std::size_t kMostLabels = 100'000;

// A finite number.
std::optional<double> number_in(std::string_view field) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// What others write where there is no value.
bool is_missing(std::string_view field) {
  constexpr std::array<std::string_view, 8> kWords{"",    "na",   "n/a",  "#n/a",
                                                   "nan", "null", "none", "?"};
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return detail::is_name(field, word); });
}

// The rows of a table, one after the other.
class Table {
 public:
  explicit Table(const path& file) : reader_(open(file)) {
    do {
      if (!reader_.next_line())
        reader_.fail("there is no header", "a line with the columns' names");
    } while (detail::is_blank(reader_.line()));
    separator_ = *std::ranges::max_element(detail::kSeparators, {}, [&](char separator) {
      return std::ranges::count(reader_.line(), separator);
    });
    split();
    for (const std::string_view field : cells_.fields) names_.emplace_back(field);
    check_names();
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return cells_.fields; }

  // False at the end. Blank lines are left out.
  bool next() {
    do {
      if (!reader_.next_line()) return false;
    } while (detail::is_blank(reader_.line()));
    split();
    if (cells_.fields.size() != names_.size()) {
      reader_.fail(fmt::format("{} fields", cells_.fields.size()),
                   fmt::format("{}, as the header has", names_.size()));
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (is_missing(cells_.fields[i])) fail(i, "has no value", "a value in every field");
    }
    return true;
  }

  // About a field of the row that was read last.
  [[noreturn]] void fail(std::size_t column, std::string_view wrong,
                         std::string_view accepted) const {
    reader_.fail(fmt::format("column {} {}", excerpt(names_[column]), wrong), accepted);
  }
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const {
    reader_.fail(wrong, accepted);
  }

  [[nodiscard]] std::size_t column(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    throw Error(
        fmt::format("{}: {}", reader_.source(), unknown_name_message("column", name, names)));
  }

 private:
  static detail::TextReader open(const path& file) {
    // It is read twice.
    std::error_code ignored;
    if (std::filesystem::is_fifo(file, ignored)) {
      throw Error(fmt::format("{}: is a pipe; accepted: a file", file.string()));
    }
    return detail::TextReader::open(file, "the table", "a table in CSV with a header");
  }

  void split() {
    detail::split_csv(reader_.line(), separator_, cells_);
    if (!cells_.flaw.empty()) {
      reader_.fail(fmt::format("{} in {}", cells_.flaw, excerpt(reader_.line())),
                   "quotes in pairs");
    }
  }

  void check_names() const {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty()) {
        reader_.fail(fmt::format("column {} has no name", i + 1), "a name for each column");
      }
      if (!seen.insert(names_[i]).second) fail(i, "is there twice", "names that differ");
    }
    if (names_.size() < 2) {
      reader_.fail("there is one column", "at least one feature and the label");
    }
  }

  detail::TextReader reader_;
  char separator_ = ',';
  detail::CsvFields cells_;
  std::vector<std::string> names_;
};

// What the training table has in a column, and so how its fields become numbers.
struct Column {
  bool numeric = true;
  bool whole = true;
  // The line of the first field that is no number, in words.
  std::string first_text{};
  // All different fields, as long as they are not more than `most`.
  std::set<std::string, std::less<>> texts{};
  bool too_many = false;
  // Where each text goes: its feature, counted from the column's first, or its class.
  std::map<std::string, std::int64_t, std::less<>> places{};

  void see(std::string_view field, std::size_t most) {
    const auto number = number_in(field);
    if (numeric && !number) first_text = excerpt(field);
    numeric = numeric && number.has_value();
    whole = whole && number && *number == std::floor(*number);
    if (too_many || texts.contains(field)) return;
    too_many = texts.size() == most;
    if (!too_many) texts.emplace(field);
  }
};

// Numbers the different texts; those of one number, "1" and "1.0", are one.
void number_texts(Column& column, bool by_value) {
  if (!by_value) {
    for (const std::string& text : column.texts) {
      column.places.emplace(text, static_cast<std::int64_t>(column.places.size()));
    }
    return;
  }
  std::set<double> values;
  for (const std::string& text : column.texts) values.insert(*number_in(text));
  for (const std::string& text : column.texts) {
    const auto at = values.find(*number_in(text));
    column.places.emplace(text, std::distance(values.begin(), at));
  }
}

class TableEncoder {
 public:
  TableEncoder(const path& file, const CsvOptions& options) : options_(options), file_(file) {
    Table table(file);
    names_ = table.names();
    label_ = options.label.empty() ? names_.size() - 1 : table.column(options.label);
    columns_.resize(names_.size());
    while (table.next()) {
      ++rows_;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        columns_[i].see(table.fields()[i], i == label_ ? kMostLabels : kMostCategories);
      }
    }
    if (rows_ == 0) table.fail("there is no row", "a row for each sample");
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != label_) add_features(columns_[i], i);
    }
    choose_targets();
  }

  // Of classes that were seen; 0 where targets are numbers.
  [[nodiscard]] std::int64_t classes() const { return classes_; }

  // Of each feature, whether it says that a column has some text.
  [[nodiscard]] const std::vector<bool>& is_category() const { return is_category_; }

  // Of the training table itself, or of another with the same columns.
  [[nodiscard]] SampleSet encode(const path& file) const {
    Table table(file);
    if (table.names() != names_) {
      table.fail(fmt::format("the columns are {}", some(table.names())),
                 fmt::format("those of {}: {}", file_.string(), some(names_)));
    }
    std::vector<float> inputs;
    std::vector<float> numbers;
    std::vector<std::int64_t> classes;
    std::int64_t rows = 0;
    if (file == file_) {
      const double values = static_cast<double>(rows_) * static_cast<double>(features_);
      require_memory(
          values * sizeof(float),
          fmt::format("{}, {} rows of {} features, needs", file.string(), rows_, features_),
          "fewer columns of text need less");
      inputs.reserve(static_cast<std::size_t>(rows_) * features_);
    }
    while (table.next()) {
      ++rows;
      const std::size_t begin = inputs.size();
      inputs.resize(begin + features_);
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (i == label_) continue;
        encode(table, i, inputs.data() + begin + first_feature_[i]);
      }
      if (classes_ > 0) {
        classes.push_back(place(table, label_));
      } else {
        numbers.push_back(number(table, label_));
      }
    }
    if (rows == 0) table.fail("there is no row", "a row for each sample");
    return {.inputs = rows_of(ElementType::f32, {static_cast<std::int64_t>(features_)}, rows,
                              std::move(inputs)),
            .targets = classes_ > 0 ? rows_of(ElementType::i64, {}, rows, std::move(classes))
                                    : rows_of(ElementType::f32, {1}, rows, std::move(numbers))};
  }

 private:
  template <class T>
  static SampleRows rows_of(ElementType type, std::vector<std::int64_t> shape, std::int64_t rows,
                            std::vector<T> values) {
    const std::size_t stride = values.size() / static_cast<std::size_t>(rows) * sizeof(T);
    const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    return {type,
            std::move(shape),
            stride,
            {{.begin = reinterpret_cast<const char*>(owner->data()), .count = rows}},
            owner};
  }

  // "a, b, c, ...".
  static std::string some(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 8;
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, names.size()));
    return excerpt(fmt::to_string(fmt::join(names.begin(), end, ", ")));
  }

  void add_features(Column& column, std::size_t i) {
    first_feature_.resize(columns_.size());
    first_feature_[i] = features_;
    if (column.numeric) {
      is_category_.push_back(false);
      ++features_;
      return;
    }
    if (column.too_many) {
      throw Error(
          fmt::format("{}: column {} has more than {} different values, such as {}; accepted: a "
                      "column of numbers, or one of fewer categories",
                      file_.string(), excerpt(names_[i]), kMostCategories, column.first_text));
    }
    number_texts(column, /*by_value=*/false);
    is_category_.insert(is_category_.end(), column.texts.size(), true);
    features_ += column.texts.size();
  }

  void choose_targets() {
    Column& column = columns_[label_];
    const std::string name = excerpt(names_[label_]);
    const bool numbers =
        options_.targets == CsvTargets::numbers ||
        (options_.targets == CsvTargets::automatic && column.numeric && !column.whole);
    if (numbers && !column.numeric) {
      throw Error(fmt::format("{}: column {} has {}, which is no number; accepted: targets=classes",
                              file_.string(), name, column.first_text));
    }
    if (numbers) return;
    if (column.too_many) {
      throw Error(
          fmt::format("{}: column {} has more than {} different values; accepted: fewer "
                      "classes, or targets=numbers",
                      file_.string(), name, kMostLabels));
    }
    number_texts(column, column.numeric);
    for (const auto& [text, place] : column.places) classes_ = std::max(classes_, place + 1);
  }

  [[nodiscard]] float number(const Table& table, std::size_t i) const {
    const auto value = number_in(table.fields()[i]);
    if (!value) {
      table.fail(i, fmt::format("has {}", excerpt(table.fields()[i])),
                 fmt::format("a number, as in {}", file_.string()));
    }
    const auto single = static_cast<float>(*value);
    if (!std::isfinite(single)) table.fail(i, "is too large", "a number that float32 holds");
    return single;
  }
  [[nodiscard]] std::int64_t place(const Table& table, std::size_t i) const {
    const auto found = columns_[i].places.find(table.fields()[i]);
    if (found != columns_[i].places.end()) return found->second;
    table.fail(i, fmt::format("has {}", excerpt(table.fields()[i])),
               fmt::format("a value that is in {}", file_.string()));
  }
  void encode(const Table& table, std::size_t i, float* features) const {
    if (columns_[i].numeric) {
      *features = number(table, i);
    } else {
      features[place(table, i)] = 1;
    }
  }

  CsvOptions options_;
  path file_;
  std::vector<std::string> names_;
  std::size_t label_ = 0;
  std::int64_t rows_ = 0;
  std::vector<Column> columns_;
  std::vector<std::size_t> first_feature_;
  std::size_t features_ = 0;
  std::vector<bool> is_category_;
  std::int64_t classes_ = 0;
};

}  // namespace

DataSets read_csv_samples(const path& file, const CsvOptions& options) {
  const TableEncoder encoder(file, options);
  DataSets data{.train = encoder.encode(file)};
  if (options.standardise) data.standardised = Standardised{.except = encoder.is_category()};
  if (options.test) data.test = encoder.encode(*options.test);
  data.classes = encoder.classes();
  return data;
}

}  // namespace rubato
