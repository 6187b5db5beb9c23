#include "table_encoding.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/tables/field.hpp"
#include "csv_table.hpp"

namespace rubato {

namespace {

using detail::excerpt;

// Of one column. More are no categories but names, dates or identifiers.
constexpr std::size_t kMostCategories = 1000;
constexpr std::size_t kMostLabels = 100'000;

// What the fields of a column are.
struct ColumnFacts {
  std::size_t most = kMostCategories;
  std::int64_t numbers = 0;
  std::int64_t texts = 0;
  // Whether there is no number with a fraction.
  bool whole = true;
  // The first field that is no number, and its line.
  std::string first_text{};
  std::int64_t first_text_line = 0;
  // All different fields, as long as they are not more than `most`.
  std::set<std::string, std::less<>> different{};
  bool too_many = false;

  void see(std::string_view field, std::int64_t line) {
    if (const auto number = number_in(field)) {
      ++numbers;
      whole = whole && *number == std::floor(*number);
    } else if (++texts == 1) {
      first_text = excerpt(field);
      first_text_line = line;
    }
    if (too_many || different.contains(field)) return;
    too_many = different.size() == most;
    if (!too_many) different.emplace(field);
  }
};

class EncodingLearner {
 public:
  EncodingLearner(const std::filesystem::path& file, const CsvOptions& options)
      : options_(options), table_(file) {
    const std::vector<std::string>& names = table_.names();
    if (names.size() < 2) {
      table_.fail("there is one column", "at least one feature and the label");
    }
    encoding_.source = table_.source();
    encoding_.missing = options.missing;
    encoding_.label = options.label.empty() ? names.size() - 1 : table_.column(options.label);
    for (const std::string& name : names) encoding_.columns.push_back({.name = name});
    for (const auto& [name, kind] : options.types) {
      if (table_.column(name) == encoding_.label) {
        throw Error(
            fmt::format("{}: types: column {} is that of the labels; accepted: targets=classes or "
                        "targets=numbers for it",
                        table_.source(), excerpt(name)));
      }
    }
    facts_.resize(names.size());
    facts_[encoding_.label].most = kMostLabels;
  }

  [[nodiscard]] TableEncoding learn() {
    while (table_.next()) see_row();
    if (encoding_.rows == 0) table_.fail("there is no row with values", "a row for each sample");
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (i == encoding_.label) {
        choose_targets();
      } else {
        choose_features(i);
      }
    }
    return std::move(encoding_);
  }

 private:
  void see_row() {
    const auto missing = table_.missing();
    if (missing && options_.missing == MissingValues::drop) return;
    if (missing && options_.missing == MissingValues::refuse) {
      table_.fail(*missing, "has no value", kEveryValue);
    }
    ++encoding_.rows;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const std::string_view field = table_.fields()[i];
      if (!is_missing(field)) {
        facts_[i].see(field, table_.line());
      } else if (i == encoding_.label) {
        table_.fail(i, "has no value", "a label in every row, or missing=drop");
      }
    }
  }

  // About the first field of a column that is no number.
  [[noreturn]] void fail(std::size_t i, std::string_view wrong, std::string_view accepted) const {
    throw Error(fmt::format("{}:{}: column {} has {}, {}; accepted: {}", encoding_.source,
                            facts_[i].first_text_line, excerpt(encoding_.columns[i].name),
                            facts_[i].first_text, wrong, accepted));
  }
  // Where most fields are numbers: a typo must not make categories of all others.
  void require_no_odd_text(std::size_t i, std::string_view accepted) const {
    const ColumnFacts& facts = facts_[i];
    if (facts.texts == 0 || facts.numbers <= facts.texts) return;
    fail(i,
         fmt::format("and {} of its {} fields are numbers", facts.numbers,
                     facts.numbers + facts.texts),
         fmt::format("a number, such as -0.5 or 1e3, or {}", accepted));
  }

  [[nodiscard]] ColumnKind kind_of(std::size_t i) const {
    const ColumnFacts& facts = facts_[i];
    const std::string& name = encoding_.columns[i].name;
    if (const auto given = options_.types.find(name); given != options_.types.end()) {
      if (given->second == ColumnKind::numbers && facts.texts > 0) {
        fail(i, "which is no number", "a number, such as -0.5 or 1e3");
      }
      return given->second;
    }
    require_no_odd_text(i, fmt::format("types={}:category", name));
    return facts.texts == 0 ? ColumnKind::numbers : ColumnKind::categories;
  }

  void choose_features(std::size_t i) {
    const ColumnFacts& facts = facts_[i];
    TableColumn& column = encoding_.columns[i];
    if (facts.numbers + facts.texts == 0) {
      throw Error(fmt::format("{}: column {} has no value in any row; accepted: a table without it",
                              encoding_.source, excerpt(column.name)));
    }
    column.kind = kind_of(i);
    if (column.kind == ColumnKind::numbers) return;
    if (facts.too_many) {
      throw Error(
          fmt::format("{}: column {} has more than {} different values, such as {}; accepted: a "
                      "column of numbers, or one of fewer categories",
                      encoding_.source, excerpt(column.name), kMostCategories,
                      excerpt(*facts.different.begin())));
    }
    column.categories.assign(facts.different.begin(), facts.different.end());
  }

  void choose_targets() {
    const std::size_t i = encoding_.label;
    const ColumnFacts& facts = facts_[i];
    TableColumn& column = encoding_.columns[i];
    if (options_.targets == CsvTargets::automatic) {
      require_no_odd_text(i, "targets=classes");
    }
    const bool numbers =
        options_.targets == CsvTargets::numbers ||
        (options_.targets == CsvTargets::automatic && facts.texts == 0 && !facts.whole);
    if (numbers) {
      if (facts.texts > 0) fail(i, "which is no number", "targets=classes");
      return;
    }
    if (facts.too_many) {
      throw Error(
          fmt::format("{}: column {} has more than {} different values; accepted: fewer "
                      "classes, or targets=numbers",
                      encoding_.source, excerpt(column.name), kMostLabels));
    }
    column.kind = ColumnKind::categories;
    encoding_.label_by_value = facts.texts == 0;
    if (!encoding_.label_by_value) {
      column.categories.assign(facts.different.begin(), facts.different.end());
      return;
    }
    // Texts of one number, "1" and "1.0", are one class.
    std::set<double> values;
    for (const std::string& text : facts.different) values.insert(*number_in(text));
    for (const double value : values) column.categories.push_back(fmt::to_string(value));
  }

  const CsvOptions& options_;
  CsvTable table_;
  TableEncoding encoding_;
  std::vector<ColumnFacts> facts_;
};

// How many numbers a column of features becomes.
std::size_t width_of(const TableColumn& column) {
  return column.kind == ColumnKind::numbers ? 1 : column.categories.size();
}

}  // namespace

std::int64_t TableEncoding::classes() const {
  return static_cast<std::int64_t>(columns[label].categories.size());
}

std::int64_t TableEncoding::features() const {
  return static_cast<std::int64_t>(columns_of_features().size());
}

std::int64_t TableEncoding::columns_of(ColumnKind kind) const {
  const auto all = std::ranges::count(columns, kind, &TableColumn::kind);
  return all - (columns[label].kind == kind ? 1 : 0);
}

std::vector<std::size_t> TableEncoding::columns_of_features() const {
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i != label) of.insert(of.end(), width_of(columns[i]), i);
  }
  return of;
}

TableEncoding learn_encoding(const std::filesystem::path& file, const CsvOptions& options) {
  return EncodingLearner(file, options).learn();
}

}  // namespace rubato
