// EncodingLearner passes over the table once and keeps ColumnFacts of each column: how many fields
// are numbers and texts, and the different fields up to a limit, so its memory does not grow with
// the number of rows. Types are chosen from these facts after the last row. Most of the code
// refuses: an identifier, a date, a typo or a header taken as data would train without an error and
// give a useless model, so every doubtful case is an Error that names the option which settles it.
// A column has two indices, one among the names of the table and one in the encoding, which lacks
// the ignored columns; at_ leads from the second to the first.

#include "table_encoding.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"
#include "csv_table.hpp"
#include "separator.hpp"

namespace rubato {

namespace {

using detail::excerpt;

// The limit for a column of features. Columns with more texts are names, dates or identifiers
// rather than categories.
constexpr std::size_t kMostCategories = 1000;
constexpr std::size_t kMostLabels = 100'000;

// Returns whether a whole number changes where it becomes a double, as identifiers do.
bool is_rounded(std::string_view field, Decimal decimal) {
  const auto number = exact_number_in(field, decimal);
  return number && !number->digits.empty() &&
         number->digits != fmt::format("{:.0f}", std::abs(number->value));
}

// The categories of a column, in the order of their bytes; those that are one truth are one.
std::vector<std::string> categories_in(const std::set<std::string, std::less<>>& different) {
  std::vector<std::string> categories;
  std::set<std::string_view> truths;
  for (const std::string& text : different) {
    const std::string_view truth = truth_in(text);
    if (truth.empty() || truths.insert(truth).second) categories.push_back(text);
  }
  return categories;
}

// Facts about the fields of a column.
struct ColumnFacts {
  std::size_t most = kMostCategories;
  std::int64_t numbers = 0;
  std::int64_t texts = 0;
  // The number of texts that look like numbers.
  std::int64_t alike = 0;
  // True while no number has a fraction.
  bool whole = true;
  // The first whole number that a double does not hold.
  std::string too_large{};
  // The first field that is not a number, and its line.
  std::string first_text{};
  std::int64_t first_text_line = 0;
  // All different fields, as long as they are not more than `most`.
  std::set<std::string, std::less<>> different{};
  bool too_many = false;

  void see(std::string_view field, std::int64_t line, Decimal decimal) {
    if (const auto number = number_in(field, decimal)) {
      ++numbers;
      whole = whole && *number == std::floor(*number);
      // Only large numbers lose the 1.
      const double magnitude = std::abs(*number);
      const bool is_large = magnitude + 1 == magnitude;
      if (is_large && too_large.empty() && is_rounded(field, decimal)) too_large = field;
    } else {
      if (resembles_number(field)) ++alike;
      if (++texts == 1) {
        first_text = excerpt(field);
        first_text_line = line;
      }
    }
    if (too_many || different.contains(field)) return;
    too_many = different.size() == most;
    if (!too_many) different.emplace(field);
  }
};

class EncodingLearner {
 public:
  EncodingLearner(const std::filesystem::path& file, const CsvOptions& options)
      : options_(options),
        encoding_{.missing = options.missing,
                  .missing_words = options.missing_words,
                  .format = format_of(file, options)},
        table_(open_table(file), encoding_.format) {
    const std::vector<std::string>& names = table_.names();
    require_names(names);
    encoding_.source = table_.source();
    find_ignored();
    const std::size_t label = options.label.empty() ? last_column() : table_.column(options.label);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_ignored(names[i])) continue;
      if (i == label) encoding_.label = at_.size();
      encoding_.columns.push_back({.name = names[i]});
      at_.push_back(i);
    }
    if (at_.size() < 2) {
      table_.fail("there is one column",
                  "at least one feature and the label, or separator= where they are separated by "
                  "neither commas, semicolons nor tabs");
    }
    if (is_ignored(names[label])) {
      fail_option("ignore", names[label], "is that of the labels", "another label=NAME");
    }
    for (const auto& [name, kind] : options.types) {
      const std::size_t column = table_.column(name);
      if (column == label) {
        fail_option("types", name, "is that of the labels",
                    "targets=classes or targets=numbers for it");
      }
      if (is_ignored(name)) fail_option("types", name, "is ignored", "one of the two");
    }
    facts_.resize(at_.size());
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
    if (options_.header == TableHeader::automatic) require_header();
    return std::move(encoding_);
  }

 private:
  [[nodiscard]] static TableFormat format_of(const std::filesystem::path& file,
                                             const CsvOptions& options) {
    TableFormat format{.separator = options.separator,
                       .comment = options.comment,
                       .decimal = options.decimal,
                       .has_header = options.header != TableHeader::no};
    if (format.separator.empty()) format.separator = found_separator(file, format);
    return format;
  }

  [[noreturn]] void fail_option(std::string_view option, std::string_view column,
                                std::string_view wrong, std::string_view accepted) const {
    throw_error("{}: {}: column {} {}; accepted: {}", table_.source(), option, excerpt(column),
                wrong, accepted);
  }
  [[noreturn]] void fail_header() const {
    constexpr std::size_t kMost = 8;
    const std::vector<std::string>& names = table_.names();
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, names.size()));
    throw_error(
        "{}: the first line, {}, looks like data; accepted: header=no where it is, and header=yes "
        "where it names the columns",
        table_.source(), excerpt(fmt::to_string(fmt::join(names.begin(), end, ","))));
  }
  // A name such as "5.1" or "-3" means that the line is data.
  void require_names(const std::vector<std::string>& names) const {
    if (options_.header != TableHeader::automatic) return;
    const bool data = std::ranges::any_of(names, [&](const std::string& name) {
      const auto number = number_in(name, options_.decimal);
      return number && (*number < 0 || name.find_first_not_of("0123456789") != std::string::npos);
    });
    if (data) fail_header();
  }
  // Throws Error if the first line would be a row like the others. Consecutive whole numbers are
  // accepted, because pandas gives such names.
  void require_header() const {
    bool is_data = true;
    bool counts = true;
    std::optional<double> before;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const std::string& name = encoding_.columns[i].name;
      const auto number = number_in(name, options_.decimal);
      const bool fits =
          facts_[i].texts == 0 ? number.has_value() : facts_[i].different.contains(name);
      is_data = is_data && fits;
      counts = counts && number && (!before || *number == *before + 1);
      before = number;
    }
    if (is_data && !counts) fail_header();
  }

  // A name with a slash is divided into several elements; the longest existing name counts.
  void find_ignored() {
    const std::vector<std::string>& names = table_.names();
    const std::vector<std::string>& parts = options_.ignore;
    for (auto part = parts.begin(); part != parts.end();) {
      auto end = parts.end();
      std::string name;
      for (; end != part; --end) {
        name = fmt::to_string(fmt::join(part, end, "/"));
        if (std::ranges::find(names, name) != names.end()) break;
      }
      if (end == part) static_cast<void>(table_.column(*part));
      encoding_.ignored.push_back(name);
      part = end;
    }
  }
  [[nodiscard]] bool is_ignored(std::string_view name) const {
    return std::ranges::find(encoding_.ignored, name) != encoding_.ignored.end();
  }
  // Returns the last column that is not ignored, or 0 if all are.
  [[nodiscard]] std::size_t last_column() const {
    const std::vector<std::string>& names = table_.names();
    std::size_t last = names.size() - 1;
    while (last > 0 && is_ignored(names[last])) --last;
    return last;
  }

  [[nodiscard]] std::string_view field(std::size_t i) const { return table_.fields()[at_[i]]; }
  [[nodiscard]] bool is_missing(std::size_t i) const {
    return rubato::is_missing(field(i), options_.missing_words);
  }
  // Returns the first column without a value in a row.
  [[nodiscard]] std::optional<std::size_t> missing() const {
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if (is_missing(i)) return at_[i];
    }
    return std::nullopt;
  }

  void see_row() {
    const auto missing = this->missing();
    if (missing && options_.missing == MissingValues::drop) return;
    if (missing && options_.missing == MissingValues::refuse) {
      refuse_missing(table_, *missing);
    }
    ++encoding_.rows;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!is_missing(i)) {
        facts_[i].see(field(i), table_.line(), options_.decimal);
      } else if (i == encoding_.label) {
        table_.fail(at_[i], "has no value", "a label in every row, or missing=drop");
      }
    }
  }

  // Throws Error about the first field of a column that is not a number.
  [[noreturn]] void fail(std::size_t i, std::string_view wrong, std::string_view accepted) const {
    throw_error("{}:{}: column {} has {}, {}; accepted: {}", encoding_.source,
                facts_[i].first_text_line, excerpt(encoding_.columns[i].name), facts_[i].first_text,
                wrong, accepted);
  }
  // If most fields are numbers, a typo must not turn all others into categories.
  void require_no_odd_text(std::size_t i, std::string_view accepted) const {
    const ColumnFacts& facts = facts_[i];
    if (facts.texts == 0 || facts.numbers <= facts.texts) return;
    fail(i,
         fmt::format("and {} of its {} fields are numbers", facts.numbers,
                     facts.numbers + facts.texts),
         fmt::format("{}, or {}", a_number(i), accepted));
  }
  // If nearly all texts are meant as numbers, each would become a category of its own.
  void require_no_alike(std::size_t i, std::string_view accepted) const {
    const ColumnFacts& facts = facts_[i];
    constexpr std::int64_t kTenth = 10;
    if (facts.texts == 0 || facts.texts - facts.alike > facts.texts / kTenth) return;
    fail(i, fmt::format("and {} of its {} texts look like numbers", facts.alike, facts.texts),
         fmt::format("{}, or {}", a_number(i), accepted));
  }
  // Returns whether most of many values differ.
  [[nodiscard]] static bool names_rows(const ColumnFacts& facts) {
    constexpr std::size_t kFew = 10;
    const auto different = static_cast<std::int64_t>(facts.different.size());
    return facts.different.size() > kFew && 2 * different > facts.numbers + facts.texts;
  }
  [[noreturn]] void fail_different(std::size_t i, std::string_view accepted) const {
    const ColumnFacts& facts = facts_[i];
    throw_error("{}: column {} has {}{} different values in {} rows, such as {}; accepted: {}",
                encoding_.source, excerpt(encoding_.columns[i].name),
                facts.too_many ? "more than " : "", facts.different.size(),
                facts.numbers + facts.texts,
                facts.texts > 0 ? facts.first_text : excerpt(*facts.different.begin()), accepted);
  }
  // A model could learn nothing from names and identifiers.
  void require_categories(std::size_t i) const {
    if (!names_rows(facts_[i])) return;
    const std::string& name = encoding_.columns[i].name;
    fail_different(
        i, fmt::format("ignore={} to leave it out{}", name,
                       facts_[i].too_many ? "" : fmt::format(", or types={}:category", name)));
  }
  // Neither could it learn as many classes: names and identifiers again, or numbers such as prices.
  void require_classes(std::size_t i) const {
    const ColumnFacts& facts = facts_[i];
    if (!names_rows(facts) && facts.different.size() <= kMostCategories) return;
    fail_different(i, facts.texts == 0 ? "targets=numbers, or targets=classes"
                                       : "label=NAME for another column, or targets=classes");
  }
  // Identifiers that differ would be the same as numbers.
  void require_held(std::size_t i) const {
    if (facts_[i].too_large.empty()) return;
    const std::string& name = encoding_.columns[i].name;
    throw_error(
        "{}: column {} has {}, and whole numbers above 2^53 are rounded; accepted: ignore={} to "
        "leave it out, types={}:category, or types={}:number to round it",
        encoding_.source, excerpt(name), excerpt(facts_[i].too_large), name, name, name);
  }
  // Returns an example of a number, for messages about a field that is not one.
  [[nodiscard]] std::string a_number(std::size_t i) const {
    if (options_.decimal == Decimal::comma) return "a number, such as -0,5 or 1e3";
    const bool comma = facts_[i].first_text.find(',') != std::string::npos;
    return fmt::format("a number, such as -0.5 or 1e3{}",
                       comma ? ", decimal=comma where -0,5 is one" : "");
  }

  [[nodiscard]] ColumnKind kind_of(std::size_t i) const {
    const ColumnFacts& facts = facts_[i];
    const std::string& name = encoding_.columns[i].name;
    if (const auto given = options_.types.find(name); given != options_.types.end()) {
      if (given->second == ColumnKind::numbers && facts.texts > 0) {
        fail(i, "which is not a number", a_number(i));
      }
      return given->second;
    }
    const std::string accepted = fmt::format("types={0}:category or ignore={0}", name);
    require_no_odd_text(i, accepted);
    require_no_alike(i, accepted);
    if (facts.texts > 0) {
      require_categories(i);
    } else {
      require_held(i);
    }
    return facts.texts == 0 ? ColumnKind::numbers : ColumnKind::categories;
  }

  void choose_features(std::size_t i) {
    const ColumnFacts& facts = facts_[i];
    TableColumn& column = encoding_.columns[i];
    if (facts.numbers + facts.texts == 0) {
      throw_error("{}: column {} has no value in any row; accepted: ignore={}", encoding_.source,
                  excerpt(column.name), column.name);
    }
    column.kind = kind_of(i);
    if (column.kind == ColumnKind::numbers) return;
    if (facts.too_many) {
      throw_error(
          "{}: column {} has more than {} different values, such as {}; accepted: a column of "
          "numbers, one of fewer categories, or ignore={}",
          encoding_.source, excerpt(column.name), kMostCategories,
          excerpt(*facts.different.begin()), column.name);
    }
    column.categories = categories_in(facts.different);
  }

  void choose_targets() {
    const std::size_t i = encoding_.label;
    const ColumnFacts& facts = facts_[i];
    TableColumn& column = encoding_.columns[i];
    if (options_.targets == CsvTargets::automatic) {
      require_no_odd_text(i, "targets=classes");
      require_no_alike(i, "targets=classes");
    }
    const bool numbers =
        options_.targets == CsvTargets::numbers ||
        (options_.targets == CsvTargets::automatic && facts.texts == 0 && !facts.whole);
    if (numbers) {
      if (facts.texts > 0) fail(i, "which is not a number", "targets=classes");
      return;
    }
    if (options_.targets == CsvTargets::automatic) require_classes(i);
    if (facts.too_many) {
      throw_error(
          "{}: column {} has more than {} different values; accepted: fewer classes, or "
          "targets=numbers",
          encoding_.source, excerpt(column.name), kMostLabels);
    }
    column.kind = ColumnKind::categories;
    encoding_.label_by_value = facts.texts == 0;
    if (!encoding_.label_by_value) {
      column.categories = categories_in(facts.different);
      return;
    }
    // Texts of one number, "1" and "1.0", are one class, which is called as the shortest of them.
    std::map<ExactNumber, std::string> classes;
    for (const std::string& text : facts.different) {
      std::string& name = classes[*exact_number_in(text, options_.decimal)];
      if (name.empty() || text.size() < name.size()) name = text;
    }
    for (const auto& [number, name] : classes) column.categories.push_back(name);
  }

  const CsvOptions& options_;
  TableEncoding encoding_;
  CsvTable table_;
  // Each column of the encoding has its place in the table here, and facts about its fields.
  std::vector<std::size_t> at_;
  std::vector<ColumnFacts> facts_;
};

// The number of features that a column becomes.
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
