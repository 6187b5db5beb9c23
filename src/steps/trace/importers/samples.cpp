#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/tables/csv_line.hpp"
#include "base/core/tables/field.hpp"
#include "importers.hpp"
#include "steps/trace/microseconds.hpp"

namespace rubato::detail {

namespace {

// Where in a row what is asked for stands.
struct SampleColumns {
  char separator = ',';
  std::size_t fields = 0;
  std::size_t time = 0;
  std::size_t count = 0;
};

// What pandas calls the column of row numbers.
bool is_index(std::string_view name) {
  return name.empty() || is_name(name, "index") || is_name(name, "unnamed: 0");
}

// The columns of a header with that separator: one of times, one of counts, and indices.
std::optional<SampleColumns> columns_with(std::string_view line, char separator) {
  CsvFields cells;
  split_csv(line, separator, cells);
  const auto& names = cells.fields;
  if (!cells.flaw.empty()) return std::nullopt;
  SampleColumns columns{.separator = separator, .fields = names.size()};
  int times = 0;
  int counts = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_time(names[i])) {
      columns.time = i;
      ++times;
    } else if (!is_index(names[i])) {
      columns.count = i;
      ++counts;
    }
  }
  if (times != 1 || counts != 1) return std::nullopt;
  return columns;
}

SampleColumns read_sample_header(TextReader& reader) {
  if (!reader.next_line() || is_blank(reader.line())) {
    throw Error(fmt::format("{}: the file is empty, or begins with a blank line; accepted: {}",
                            reader.source(), kFormatsAccepted));
  }
  for (const char separator : kSeparators) {
    if (const auto columns = columns_with(reader.line(), separator)) return *columns;
  }
  reader.fail(fmt::format("{} is no header of an availability", excerpt(reader.line())),
              kFormatsAccepted);
}

// A row that may be the last.
struct Sample {
  double seconds = 0;
  // Empty in the row that says where the availability ends.
  std::optional<std::int64_t> count{};
};

Sample read_sample(const TextReader& reader, const SampleColumns& columns, CsvFields& cells) {
  if (!cells.flaw.empty()) {
    reader.fail(fmt::format("{} in {}", cells.flaw, excerpt(reader.line())),
                "a number in each field");
  }
  cells.drop_empty_beyond(columns.fields);
  const auto& fields = cells.fields;
  if (fields.size() != columns.fields) {
    reader.fail(fmt::format("{} field{} in {}", fields.size(), fields.size() == 1 ? "" : "s",
                            excerpt(reader.line())),
                fmt::format("{}, as the header has", columns.fields));
  }
  const std::string_view time = fields[columns.time];
  Sample sample;
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), sample.seconds);
  // Times since 1970 are below 1e10 in seconds.
  constexpr double kFarthest = 1e12;
  if (error != std::errc{} || end != time.data() + time.size() ||
      !(std::abs(sample.seconds) <= kFarthest)) {
    reader.fail(fmt::format("the time {} is no number of seconds", excerpt(time)),
                "seconds, such as 1652434464.4 or 63");
  }
  const std::string_view count = fields[columns.count];
  if (count.empty()) return sample;
  sample.count = whole_number(count);
  if (!sample.count || *sample.count < 0 || *sample.count > kMaxCores) {
    reader.fail(fmt::format("the count {} {}", excerpt(count), flaw_of(count)),
                whole_range(0, kMaxCores));
  }
  return sample;
}

// Takes rows in their order, with their times in microseconds since the first.
class SampleRows {
 public:
  explicit SampleRows(const TextReader& reader) : reader_(reader) {}

  void take(const Sample& sample) {
    if (ended_) {
      reader_.fail("the row before has no count, which is where the availability ends",
                   "nothing behind it");
    }
    if (rows_ == 0 && !sample.count) reader_.fail("the first row has no count", "a count");
    if (rows_ == 0) first_ = sample.seconds;
    if (sample.seconds - first_ > kMaxAvailabilitySeconds) {
      reader_.fail(fmt::format("a time {:.0f} s after the first", sample.seconds - first_),
                   fmt::format("seconds, up to {} (ten years)", kMaxAvailabilitySeconds));
    }
    const std::int64_t time = microseconds_of(sample.seconds - first_);
    if (rows_ > 0) check_order(time, !sample.count);
    ended_ = !sample.count;
    if (sample.count) changes_.add(time, *sample.count);
    last_ = time;
    ++rows_;
  }

  // Where no row says how long the last one lasts, it is as long as the one before it.
  [[nodiscard]] AvailabilityParts all() {
    if (rows_ == 0) reader_.fail("no rows follow the header", "a row such as '0,8'");
    if (rows_ == 1) {
      reader_.fail("one row does not say how long it lasts",
                   "another one, which may be without a count: '3600,'");
    }
    const std::int64_t length = ended_ ? last_ : last_ + gap_;
    AvailabilityParts imported{.changes = changes_.take(), .length = seconds_of(length)};
    if (imported.length > kMaxAvailabilitySeconds) {
      throw Error(fmt::format("{}: it lasts {:.0f} s; accepted: up to {} s (ten years)",
                              reader_.source(), imported.length, kMaxAvailabilitySeconds));
    }
    // Two rows the second of which is the end are no samples.
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
    // An end at the time of the last row: what that row says holds for no time.
    if (gap == 0) return;
    if (rows_ > 1 && gap != gap_) regular_ = false;
    gap_ = gap;
  }

  const TextReader& reader_;
  ChangeList changes_;
  double first_ = 0;
  std::int64_t last_ = 0;
  // Between the last two rows.
  std::int64_t gap_ = 0;
  std::int64_t rows_ = 0;
  bool regular_ = true;
  bool ended_ = false;
};

}  // namespace

bool is_time(std::string_view name) {
  return is_name(name, "time") || is_name(name, "seconds") || is_name(name, "timestamp");
}

AvailabilityParts import_samples(TextReader& reader) {
  const SampleColumns columns = read_sample_header(reader);
  SampleRows rows(reader);
  CsvFields cells;
  bool blank = false;
  while (reader.next_line()) {
    split_csv(reader.line(), columns.separator, cells);
    if (cells.empty()) {
      blank = true;
      continue;
    }
    if (blank) reader.fail("there is a blank line before this row", "blank lines at the end");
    rows.take(read_sample(reader, columns, cells));
  }
  return rows.all();
}

}  // namespace rubato::detail
