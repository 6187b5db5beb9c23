// Columns are recognised by their names in the header: one of times, possibly one of prices, and
// row numbers, which are ignored; all others count devices. Each separator is tried until one gives
// such a header. Rows go to one SampleRows for the sum of the columns, or to one for each zone.
// SampleRows rounds times to microseconds after the first row, keeps only changes, so memory grows
// with these and not with rows, and notes whether the rows come at regular intervals. A last row
// without counts ends the availability; without one, the last row lasts as long as the row before
// it.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "availability_parts.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"

namespace rubato::detail {

bool is_time(std::string_view name) {
  return is_name(name, "time") || is_name(name, "seconds") || is_name(name, "timestamp");
}

namespace {

constexpr std::string_view kSeconds = "seconds, such as 1652434464.4 or 63";

// True for the names that pandas gives to the column of row numbers.
bool is_index(std::string_view name) {
  return name.empty() || is_name(name, "index") || is_name(name, "unnamed: 0");
}

// The columns of a table that hold the time and the devices.
struct SampleColumns {
  std::size_t time = 0;
  // One column, or several.
  std::vector<std::size_t> counts{};
  std::vector<std::string> names{};
  // Whether the table has several columns of devices.
  bool several = false;
  std::optional<std::size_t> price{};
};

bool is_part_of_word(char letter) {
  // Letters beyond ASCII are parts of words, too.
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || (letter & 0x80) != 0;
}

// True if `text` is in the name as one or several whole words: us-central1 in A100_us-central1-a,
// but europe-west1 not in europe-west10-a.
bool has_words(std::string_view name, std::string_view text) {
  const auto is_edge = [&](std::size_t at) {
    return at == 0 || at == name.size() || !is_part_of_word(name[at - 1]) ||
           !is_part_of_word(name[at]);
  };
  for (std::size_t at = name.find(text); at != std::string_view::npos;
       at = name.find(text, at + 1)) {
    if (is_edge(at) && is_edge(at + text.size())) return true;
  }
  return false;
}

// The indices of the columns that are wanted.
std::vector<std::size_t> wanted_among(const std::vector<std::string_view>& devices,
                                      const DeviceColumns& wanted) {
  const auto those = [&](const auto& is_wanted) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (is_wanted(devices[i])) found.push_back(i);
    }
    return found;
  };
  if (!wanted.column.empty()) {
    return those([&](std::string_view name) { return name == wanted.column; });
  }
  const std::string_view zone = wanted.zone;
  if (zone.empty() || zone == "all") return those([](std::string_view) { return true; });
  std::vector<std::size_t> found = those([&](std::string_view name) { return name == zone; });
  if (found.empty()) found = those([&](std::string_view name) { return has_words(name, zone); });
  if (!found.empty()) return found;
  return those([&](std::string_view name) { return name.find(zone) != std::string_view::npos; });
}

// The columns among `names`; empty unless there is one column of times and at least one other.
// Several columns are accepted without being asked for if each is to be a zone.
std::optional<SampleColumns> find_columns(const std::vector<std::string_view>& names,
                                          const DeviceColumns& wanted, bool zones,
                                          const TextReader& reader) {
  SampleColumns columns;
  std::vector<std::string_view> devices;
  std::vector<std::size_t> places;
  int times = 0;
  int prices = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_time(names[i])) {
      columns.time = i;
      ++times;
    } else if (is_name(names[i], "price")) {
      columns.price = i;
      ++prices;
    } else if (!is_index(names[i])) {
      devices.push_back(names[i]);
      places.push_back(i);
    }
  }
  if (times != 1 || devices.empty()) return std::nullopt;
  if (prices > 1) reader.fail(fmt::format("{} columns are prices", prices), "one column 'price'");
  for (const std::size_t i : wanted_among(devices, wanted)) {
    columns.counts.push_back(places[i]);
    columns.names.emplace_back(devices[i]);
  }
  columns.several = devices.size() > 1;
  const bool is_asked = zones || !wanted.column.empty() || !wanted.zone.empty();
  const std::string all = first_names(devices);
  if (columns.counts.empty() && !wanted.column.empty()) {
    reader.fail(unknown_name_message("column", wanted.column, devices, /*list_all=*/false), all);
  }
  if (columns.counts.empty()) {
    reader.fail(fmt::format("no column has {} in its name", excerpt(wanted.zone)),
                fmt::format("a part of {}", all));
  }
  if (columns.counts.size() > 1 && !is_asked) {
    reader.fail(
        fmt::format("{} columns may count devices: {}", devices.size(), all),
        "FILE,column=NAME for one, FILE,zone=TEXT for the sum of those with TEXT in their names, "
        "or FILE,zone=all");
  }
  return columns;
}

// The separator, the number of fields and the columns, as found in the header.
struct SampleHeader {
  char separator = ',';
  std::size_t fields = 0;
  SampleColumns columns{};
};

SampleHeader read_sample_header(TextReader& reader, const DeviceColumns& wanted, bool zones) {
  if (!reader.next_line() || is_blank(reader.line())) {
    throw_error("{}: the file is empty, or begins with a blank line; accepted: {}", reader.source(),
                kFormatsAccepted);
  }
  for (const char separator : kSeparators) {
    CsvFields cells;
    split_csv(reader.line(), separator, cells);
    if (!cells.flaw.empty()) continue;
    if (auto columns = find_columns(cells.fields, wanted, zones, reader)) {
      return {separator, cells.fields.size(), std::move(*columns)};
    }
  }
  reader.fail(fmt::format("{} is not the header of an availability", excerpt(reader.line())),
              kFormatsAccepted);
}

double read_time(const TextReader& reader, std::string_view field) {
  const auto seconds = parsed_number<double>(field);
  if (!seconds || !std::isfinite(*seconds)) {
    reader.fail(fmt::format("the time {} is not a number of seconds", excerpt(field)), kSeconds);
  }
  return *seconds;
}

double read_price(const TextReader& reader, std::string_view field) {
  const auto price = parsed_number<double>(field);
  if (!price || !kNotNegative.holds(*price)) {
    reader.fail(fmt::format("the price {} of a device for an hour", excerpt(field)),
                std::string(kNotNegative.words));
  }
  return *price;
}

std::int64_t read_count(const TextReader& reader, std::string_view field) {
  const auto count = whole_number(field);
  if (!count || *count < 0 || *count > kMaxCores) {
    reader.fail(fmt::format("the count {} {}", excerpt(field), flaw_of(field)),
                whole_range(0, kMaxCores));
  }
  return *count;
}

// Collects rows of times and counts in order.
class SampleRows {
 public:
  explicit SampleRows(const TextReader& reader) : reader_(reader) {}

  // Adds a row; one without a count must be the last and says where the availability ends. One
  // without a price continues that of the row before.
  void take(double seconds, std::optional<std::int64_t> count, std::optional<double> price) {
    // Times since 1970 are below 1e10 in seconds, and about 2e12 in milliseconds.
    constexpr double kFarthest = 1e12;
    if (std::abs(seconds) > kFarthest) {
      reader_.fail(
          fmt::format("the time {} is not a number of seconds{}", seconds,
                      std::abs(seconds) < 100 * kFarthest ? ", but looks like milliseconds" : ""),
          kSeconds);
    }
    if (ended_) {
      reader_.fail("the row before has no count, which is where the availability ends",
                   "nothing after it");
    }
    if (rows_ == 0 && !count) reader_.fail("the first row has no count", "a count");
    if (count && *count > kMaxCores) {
      reader_.fail(fmt::format("{} devices", *count), whole_range(0, kMaxCores));
    }
    if (rows_ == 0) {
      first_ = seconds;
      priced_ = price.has_value();
    } else if (price && !priced_) {
      reader_.fail("a price, which the first row has not", "prices from the first row on");
    }
    if (seconds - first_ > kMaxAvailabilitySeconds) {
      reader_.fail(
          fmt::format("a time {:.0f} s after the first", seconds - first_),
          fmt::format("seconds, up to {} (ten years), not milliseconds", kMaxAvailabilitySeconds));
    }
    const std::int64_t time = microseconds_of(seconds - first_);
    if (rows_ > 0) check_order(time, !count);
    ended_ = !count;
    if (count) changes_.add(time, *count);
    if (count && price && (prices_.empty() || prices_.back().price != *price)) {
      prices_.push_back({.seconds = seconds_of(time), .price = *price});
    }
    last_ = time;
    ++rows_;
  }

  // The availability of all rows. If no row gives its end, the last row lasts as long as the one
  // before it.
  AvailabilityParts all() {
    if (rows_ == 0) reader_.fail("no rows follow the header", "a row such as '0,8'");
    if (rows_ == 1) {
      reader_.fail("one row does not say how long it lasts",
                   "another one, which may be without a count: '3600,'");
    }
    const std::int64_t length = ended_ ? last_ : last_ + gap_;
    AvailabilityParts imported{
        .changes = changes_.take(), .length = seconds_of(length), .origin = {.start = first_}};
    if (imported.length > kMaxAvailabilitySeconds) {
      throw_error("{}: it lasts {:.0f} s; accepted: up to {} s (ten years)", reader_.source(),
                  imported.length, kMaxAvailabilitySeconds);
    }
    imported.prices = std::move(prices_);
    // If the second of two rows is the end, there is no sampling interval.
    if (regular_ && !(ended_ && rows_ == 2)) imported.sample_gap = seconds_of(gap_);
    return imported;
  }

 private:
  void check_order(std::int64_t time, bool is_end) {
    const std::int64_t gap = time - last_;
    if (gap < 0) {
      reader_.fail(fmt::format("time goes backwards, by {} s", seconds_of(-gap)),
                   "rows in the order of their time");
    }
    if (gap == 0 && !is_end) {
      reader_.fail("a gap of 0 s to the row before", "one row for each time");
    }
    // The end is at the time of the last row, which then has no duration.
    if (gap == 0) return;
    if (rows_ > 1 && gap != gap_) regular_ = false;
    gap_ = gap;
  }

  const TextReader& reader_;
  ChangeList changes_;
  std::vector<PriceChange> prices_;
  bool priced_ = false;
  double first_ = 0;
  // Time of the last row, in microseconds since the first.
  std::int64_t last_ = 0;
  // Microseconds between the last two rows.
  std::int64_t gap_ = 0;
  std::int64_t rows_ = 0;
  bool regular_ = true;
  bool ended_ = false;
};

// Reads a row, which may be the last, for the sum of all columns or, if there are rows for each,
// for each of them.
void read_row(const TextReader& reader, const SampleHeader& header, CsvFields& cells,
              std::vector<SampleRows>& rows) {
  if (!cells.flaw.empty()) {
    reader.fail(fmt::format("{} in {}", cells.flaw, excerpt(reader.line())),
                "a number in each field");
  }
  cells.drop_empty_beyond(header.fields);
  const auto& fields = cells.fields;
  if (fields.size() != header.fields) {
    reader.fail(fmt::format("{} field{} in {}", fields.size(), fields.size() == 1 ? "" : "s",
                            excerpt(reader.line())),
                fmt::format("{}, as the header has", header.fields));
  }
  const double seconds = read_time(reader, fields[header.columns.time]);
  const auto& counts = header.columns.counts;
  if (std::all_of(counts.begin(), counts.end(), [&](std::size_t i) { return fields[i].empty(); })) {
    for (SampleRows& of : rows) of.take(seconds, std::nullopt, std::nullopt);
    return;
  }
  std::vector<std::int64_t> devices(rows.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    devices[i % rows.size()] += read_count(reader, fields[counts[i]]);
  }
  const auto& column = header.columns.price;
  std::optional<double> price;
  if (column && !fields[*column].empty()) price = read_price(reader, fields[*column]);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].take(seconds, devices[i], price);
}

void read_rows(TextReader& reader, const SampleHeader& header, std::vector<SampleRows>& rows) {
  CsvFields cells;
  bool blank = false;
  while (reader.next_line()) {
    split_csv(reader.line(), header.separator, cells);
    if (cells.empty()) {
      blank = true;
      continue;
    }
    if (blank) reader.fail("there is a blank line before this row", "blank lines at the end");
    read_row(reader, header, cells, rows);
  }
}

}  // namespace

AvailabilityParts import_samples(TextReader& reader, const DeviceColumns& columns) {
  const SampleHeader header = read_sample_header(reader, columns, /*zones=*/false);
  std::vector<SampleRows> rows(1, SampleRows(reader));
  read_rows(reader, header, rows);
  AvailabilityParts imported = rows.front().all();
  if (header.columns.several) imported.origin.columns = header.columns.names;
  return imported;
}

std::vector<std::pair<std::string, AvailabilityParts>> import_zones(TextReader& reader,
                                                                    const DeviceColumns& columns) {
  const SampleHeader header = read_sample_header(reader, columns, /*zones=*/true);
  std::vector<SampleRows> rows(header.columns.counts.size(), SampleRows(reader));
  read_rows(reader, header, rows);
  std::vector<std::pair<std::string, AvailabilityParts>> zones;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    zones.emplace_back(header.columns.names[i], rows[i].all());
  }
  return zones;
}

}  // namespace rubato::detail
