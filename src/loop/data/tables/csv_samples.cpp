// A table is read twice: learn_encoding() decides in a first pass what each column is, and
// TableEncoder makes the rows in a second one, with memory reserved for their number. A table to
// test on, and any new one, is read with the encoding of the training table and may have its
// columns in any order; field(i) is always column i of the encoding. Numbers become one feature and
// categories one-hot features; where missing values are replaced by means, a missing number is NaN
// until InputReader replaces it, and a missing category leaves all of its features 0, as one does
// that the encoding lacks if the user says that it may. Labels are found by their value if all
// labels of the training table are numbers, and by their text otherwise.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/limits.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "csv_table.hpp"
#include "loop/data/data_files.hpp"
#include "separator.hpp"
#include "table_encoding.hpp"

namespace rubato {

namespace {

using detail::excerpt;
using std::filesystem::path;

// Finds the index of a text among the categories of a column.
class Places {
 public:
  Places(const std::vector<std::string>& categories, bool by_value, Decimal decimal)
      : by_value_(by_value), decimal_(decimal) {
    for (std::size_t i = 0; i < categories.size(); ++i) {
      const std::string& text = categories[i];
      const auto place = static_cast<std::int64_t>(i);
      texts_.emplace(text, place);
      if (const std::string_view truth = truth_in(text); !truth.empty()) {
        truths_.emplace(truth, place);
      }
      if (!by_value) continue;
      // Runs of earlier versions have numbers with a point, whatever the table has.
      const auto value = exact_number_in(text, decimal);
      if (const auto number = value ? value : exact_number_in(text)) {
        values_.emplace(*number, place);
      }
    }
  }

  [[nodiscard]] std::optional<std::int64_t> find(std::string_view field) const {
    if (by_value_) {
      const auto value = exact_number_in(field, decimal_);
      return value ? found(values_, *value) : std::nullopt;
    }
    const auto place = found(texts_, field);
    return place ? place : found(truths_, truth_in(field));
  }

 private:
  template <class Map, class Key>
  static std::optional<std::int64_t> found(const Map& map, const Key& key) {
    const auto place = map.find(key);
    return place == map.end() ? std::nullopt : std::optional(place->second);
  }

  bool by_value_;
  Decimal decimal_;
  std::map<std::string, std::int64_t, std::less<>> texts_;
  std::map<std::string_view, std::int64_t> truths_;
  std::map<ExactNumber, std::int64_t> values_;
};

template <class T>
SampleRows rows_of(ElementType type, std::vector<std::int64_t> shape, std::int64_t rows,
                   std::vector<T> values) {
  const std::size_t stride = values.size() / static_cast<std::size_t>(rows) * sizeof(T);
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return {type,
          std::move(shape),
          stride,
          {{.begin = reinterpret_cast<const char*>(owner->data()), .count = rows}},
          owner};
}

// Data to be predicted have no targets to read.
enum class Labels { read, left_alone };

// Makes samples of the rows of a table that has the columns of an encoding, in any order.
class TableEncoder {
 public:
  TableEncoder(const TableEncoding& encoding, const path& file, Labels labels = Labels::read,
               bool takes_unseen = false)
      : encoding_(encoding),
        table_(open_table(file), encoding.format),
        labelled_(labels == Labels::read),
        takes_unseen_(takes_unseen),
        features_(static_cast<std::size_t>(encoding.features())),
        classes_(encoding.classes()) {
    find_columns();
    for (std::size_t i = 0; i < encoding.columns.size(); ++i) {
      places_.emplace_back(encoding.columns[i].categories,
                           i == encoding.label && encoding.label_by_value, encoding.format.decimal);
    }
  }

  // Reads the weights of the rows from that column, too, which must not be one of the encoding.
  void read_weights(const std::string& column) {
    weights_at_ = table_.column(column);
    const auto& ignored = encoding_.ignored;
    if (std::ranges::find(ignored, column) != ignored.end()) return;
    throw_error(
        "{}: the weights in column {} are a feature or the label, too; accepted: with ignore={}",
        table_.source(), excerpt(column), column);
  }

  // Reserves memory if the number of rows is known.
  void reserve(std::int64_t rows) {
    require_memory(
        static_cast<double>(rows) * static_cast<double>(features_) * sizeof(double),
        fmt::format("{}, {} rows of {} features, needs", table_.source(), rows, features_),
        "fewer columns of text need less");
    inputs_.reserve(static_cast<std::size_t>(rows) * features_);
  }

  [[nodiscard]] SampleSet read() {
    while (table_.next()) add_row();
    if (rows_ == 0) table_.fail("there is no row with values", "a row for each sample");
    SampleSet set;
    set.inputs = rows_of(ElementType::f64, {static_cast<std::int64_t>(features_)}, rows_,
                         std::move(inputs_));
    if (!labelled_) {
      set.targets = classes_ > 0 ? zero_rows(ElementType::i64, {}, rows_)
                                 : zero_rows(ElementType::f64, {1}, rows_);
    } else if (classes_ > 0) {
      set.targets = rows_of(ElementType::i64, {}, rows_, std::move(classes_of_rows_));
    } else {
      set.targets = rows_of(ElementType::f64, {1}, rows_, std::move(numbers_of_rows_));
    }
    if (weights_at_) set.weights = std::make_shared<const std::vector<double>>(std::move(weights_));
    return set;
  }
  // The number of rows without a value.
  [[nodiscard]] std::int64_t left_out() const { return left_out_; }
  // The number of rows with a category that the encoding does not have.
  [[nodiscard]] std::int64_t rows_with_unseen() const { return rows_with_unseen_; }

 private:
  static constexpr std::string_view kKnown = "a value that is in";
  static constexpr std::string_view kKnownOrMissing = "--unseen missing, or a value that is in";

  // Finds the place in the table of each column of the encoding.
  void find_columns() {
    const std::vector<std::string>& names = table_.names();
    std::vector<std::string> wanted;
    std::size_t known = 0;
    bool complete = true;
    for (std::size_t i = 0; i < encoding_.columns.size(); ++i) {
      wanted.push_back(encoding_.columns[i].name);
      const auto found = std::ranges::find(names, wanted.back());
      if (found != names.end()) ++known;
      complete = complete && (found != names.end() || (!labelled_ && i == encoding_.label));
      at_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    const auto is_ignored = [&](const std::string& name) {
      return std::ranges::find(encoding_.ignored, name) != encoding_.ignored.end();
    };
    known += static_cast<std::size_t>(std::ranges::count_if(names, is_ignored));
    if (complete && known == names.size()) return;
    table_.fail(fmt::format("the columns are {}", excerpt(first_names(names))),
                fmt::format("those of {}: {}", encoding_.source, excerpt(first_names(wanted))));
  }

  [[nodiscard]] std::string_view field(std::size_t i) const { return table_.fields()[at_[i]]; }

  [[nodiscard]] bool is_missing(std::size_t i) const {
    return rubato::is_missing(field(i), encoding_.missing_words);
  }
  // Returns the first column without a value.
  [[nodiscard]] std::optional<std::size_t> missing() const {
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if ((labelled_ || i != encoding_.label) && is_missing(i)) return i;
    }
    return std::nullopt;
  }

  void add_row() {
    const auto missing = this->missing();
    if (missing && encoding_.missing == MissingValues::drop) {
      ++left_out_;
      return;
    }
    if (missing && encoding_.missing == MissingValues::refuse) {
      refuse_missing(table_, at_[*missing]);
    }
    ++rows_;
    const std::size_t begin = inputs_.size();
    inputs_.resize(begin + features_);
    double* next = inputs_.data() + begin;
    has_unseen_ = false;
    for (std::size_t i = 0; i < encoding_.columns.size(); ++i) {
      if (i != encoding_.label) next = add_features(i, next);
    }
    if (has_unseen_) ++rows_with_unseen_;
    if (weights_at_) weights_.push_back(weight());
    if (!labelled_) return;
    if (classes_ > 0) {
      classes_of_rows_.push_back(place(encoding_.label));
    } else {
      numbers_of_rows_.push_back(number(encoding_.label));
    }
  }

  // Returns the place of the next column's features.
  double* add_features(std::size_t i, double* features) {
    const TableColumn& column = encoding_.columns[i];
    const bool missing = is_missing(i);
    if (column.kind == ColumnKind::numbers) {
      *features = missing ? std::numeric_limits<double>::quiet_NaN() : number(i);
      return features + 1;
    }
    if (!missing) {
      if (const auto found = places_[i].find(field(i))) {
        features[*found] = 1;
      } else if (takes_unseen_) {
        has_unseen_ = true;
      } else {
        fail(i, labelled_ ? kKnown : kKnownOrMissing);
      }
    }
    return features + column.categories.size();
  }

  [[noreturn]] void fail(std::size_t i, std::string_view accepted) const {
    table_.fail(at_[i], fmt::format("has {} in row {}", excerpt(field(i)), rows_ + left_out_),
                fmt::format("{} {}", accepted, encoding_.source));
  }
  [[nodiscard]] double number(std::size_t i) const {
    const auto value = number_in(field(i), encoding_.format.decimal);
    if (!value) fail(i, "a number, as in");
    if (!std::isfinite(static_cast<float>(*value))) {
      table_.fail(at_[i], "is too large", "a number that float32 holds");
    }
    return *value;
  }
  [[nodiscard]] double weight() const {
    const std::string_view text = table_.fields()[*weights_at_];
    const auto value = number_in(text, encoding_.format.decimal);
    if (value && *value >= 0) return *value;
    table_.fail(*weights_at_, fmt::format("has the weight {}", excerpt(text)),
                "a number of at least 0 in every row");
  }
  [[nodiscard]] std::int64_t place(std::size_t i) const {
    const auto found = places_[i].find(field(i));
    if (!found) fail(i, kKnown);
    return *found;
  }

  const TableEncoding& encoding_;
  CsvTable table_;
  bool labelled_;
  // If this is true, a category that the encoding does not have is no error, but none of its own.
  bool takes_unseen_;
  std::size_t features_;
  std::int64_t classes_;
  std::vector<std::size_t> at_;
  std::vector<Places> places_;
  std::vector<double> inputs_;
  std::vector<std::int64_t> classes_of_rows_;
  std::vector<double> numbers_of_rows_;
  std::optional<std::size_t> weights_at_;
  std::vector<double> weights_;
  std::int64_t rows_ = 0;
  std::int64_t left_out_ = 0;
  // The row has a category that the encoding does not have, and so many rows have had one.
  bool has_unseen_ = false;
  std::int64_t rows_with_unseen_ = 0;
};

}  // namespace

DataSets read_csv_samples(const path& file, const CsvOptions& options) {
  const auto encoding = std::make_shared<const TableEncoding>(learn_encoding(file, options));
  TableEncoder train(*encoding, file);
  if (!options.weights.empty()) train.read_weights(options.weights);
  train.reserve(encoding->rows);
  DataSets data{.train = train.read(), .left_out = train.left_out()};
  if (options.test) {
    TableEncoder test(*encoding, *options.test);
    data.test = test.read();
    data.left_out += test.left_out();
  }
  if (options.standardise) {
    data.standardised.emplace();
    for (const std::size_t column : encoding->columns_of_features()) {
      data.standardised->except.push_back(encoding->columns[column].kind == ColumnKind::categories);
    }
  }
  data.means_for_missing = options.missing == MissingValues::mean;
  data.classes = encoding->classes();
  data.table = encoding;
  if (options.separator.empty() && !encoding->format.separator.empty()) {
    data.notes.push_back("fields separated by " + shown_separator(encoding->format.separator));
  }
  return data;
}

SampleSet read_new_csv_samples(const path& file, const DataRecord& record, bool labels,
                               const CsvOptions& options, std::int64_t* unseen) {
  TableEncoding encoding = *record.table;
  if (!options.separator.empty()) encoding.format.separator = options.separator;
  if (!options.comment.empty()) encoding.format.comment = options.comment;
  if (!options.missing_words.empty()) encoding.missing_words = options.missing_words;
  TableEncoder encoder(encoding, file, labels ? Labels::read : Labels::left_alone,
                       unseen != nullptr);
  SampleSet set = encoder.read();
  if (unseen != nullptr) *unseen = encoder.rows_with_unseen();
  // The remaining predictions would not have the numbers of their rows if one were left out.
  if (encoder.left_out() > 0) {
    throw_error(
        "{}: rows without a value: {}; accepted: a value in every field, as in the rows that were "
        "trained on",
        file.string(), encoder.left_out());
  }
  return set;
}

}  // namespace rubato
