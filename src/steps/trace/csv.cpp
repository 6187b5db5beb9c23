// The header determines the separator and the number of columns of all rows. The parser accepts
// what spreadsheets and pandas do to a file (other separators, quotes, "8.0", emptied rows at the
// end), and refuses what may be damage: missing or repeated steps, rows that were cut off, blank
// lines in the middle. Several traces may be appended to each other, each beginning with step 0
// again. The file is read as a whole before it is parsed.

#include "base/core/text/csv.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/text/text.hpp"
#include "base/core/text/text_reader.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

using detail::excerpt;
using detail::is_blank;
using detail::is_name;
using detail::kSeparators;
using detail::TextReader;
using detail::whole_number;

constexpr std::string_view kHeader = "step,batchsize";
constexpr std::string_view kHeaderWithCores = "step,batchsize,cores";
constexpr std::array<std::string_view, 3> kColumns{"step", "batchsize", "cores"};

class Parser {
 public:
  explicit Parser(TextReader reader) : reader_(std::move(reader)) {}

  std::vector<TraceStep> steps() {
    read_header();
    std::vector<TraceStep> steps;
    // The first line with nothing but separators; spreadsheets write them at the end for rows that
    // were emptied.
    std::int64_t empty_line = 0;
    while (reader_.next_line()) {
      detail::split_csv(reader_.line(), separator_, cells_);
      if (!cells_.empty()) {
        if (empty_line > 0) {
          fail_at(empty_line, "a blank line before the end of the trace",
                  fmt::format("the row of {}", next_step()));
        }
        steps.push_back(read_row());
      } else if (empty_line == 0) {
        empty_line = reader_.line_number();
      }
    }
    if (steps.empty()) {
      fail_at(1, "no rows follow the header", "a row for each step, such as '0,128'");
    }
    return steps;
  }

 private:
  [[noreturn]] void fail_at(std::int64_t line, std::string_view wrong,
                            std::string_view accepted) const {
    throw_error("{}:{}: {}; accepted: {}", reader_.source(), line, wrong, accepted);
  }

  // True if the line is a header with that separator.
  [[nodiscard]] bool is_header(char separator) {
    detail::split_csv(reader_.line(), separator, cells_);
    cells_.drop_empty_beyond(2);
    const auto& names = cells_.fields;
    return cells_.flaw.empty() && (names.size() == 2 || names.size() == kColumns.size()) &&
           std::equal(names.begin(), names.end(), kColumns.begin(), is_name);
  }

  void read_header() {
    if (is_blank(reader_.beginning())) {
      throw_error(
          "{}: the file is empty; accepted: the header '{}' or '{}', and a row for each step",
          reader_.source(), kHeader, kHeaderWithCores);
    }
    reader_.next_line();
    for (const char separator : kSeparators) {
      if (!is_header(separator)) continue;
      separator_ = separator;
      columns_ = cells_.fields.size();
      return;
    }
    const std::string accepted = fmt::format("'{}' or '{}'", kHeader, kHeaderWithCores);
    detail::split_csv(reader_.line(), kSeparators.front(), cells_);
    if (is_number(cells_.fields.front())) reader_.fail("the header is missing", accepted);
    reader_.fail(fmt::format("{} is not the header of a trace", excerpt(reader_.line())), accepted);
  }

  TraceStep read_row() {
    if (!cells_.flaw.empty()) {
      reader_.fail(fmt::format("{} in {}", cells_.flaw, excerpt(reader_.line())),
                   "a number in each field");
    }
    const auto& fields = cells_.fields;
    cells_.drop_empty_beyond(columns_);
    require_columns(fields.size());
    read_step(fields[0]);
    TraceStep step;
    step.batch_size = read_number("batch size", fields[1], kMaxBatchSize);
    if (columns_ == kColumns.size() && !fields[2].empty()) read_cores(fields[2], step);
    return step;
  }

  // Rows without their last field are refused, because a file that was cut off ends so.
  void require_columns(std::size_t count) const {
    if (count == columns_) return;
    const std::string separator = separator_ == '\t' ? "<tab>" : std::string(1, separator_);
    reader_.fail(
        fmt::format("{} field{} in {}", count, count == 1 ? "" : "s", excerpt(reader_.line())),
        fmt::format("{}, as the header says ({})", columns_,
                    fmt::join(kColumns.begin(), kColumns.begin() + columns_, separator)));
  }

  // The published trace of the original MNIST example counts 0 to 9 and then 0 to 799: traces are
  // simply appended to each other. A first row that occurs twice is not such a trace.
  [[nodiscard]] bool may_begin_again() const { return expected_step_ >= 2; }

  [[nodiscard]] std::string next_step() const {
    return fmt::format("step {}{}", expected_step_,
                       may_begin_again() ? ", or 0 where another trace is appended" : "");
  }

  void read_step(std::string_view field) {
    const std::int64_t step = whole_number(field).value_or(-1);
    if (step < 0) {
      reader_.fail(fmt::format("{} is not a step", excerpt(field)), next_step());
    }
    if (step == 0 && may_begin_again()) expected_step_ = 0;
    if (step < expected_step_)
      reader_.fail(fmt::format("step {} stands here again", step), next_step());
    if (step > expected_step_) {
      reader_.fail(fmt::format("step {} stands where step {} is missing", step, expected_step_),
                   next_step());
    }
    ++expected_step_;
  }

  // Reads a number, or one for each host with '+' between them.
  void read_cores(std::string_view field, TraceStep& step) const {
    if (field.find('+') == std::string_view::npos) {
      step.cores = read_number("cores", field, kMaxCores);
      return;
    }
    std::int64_t all = 0;
    for (const std::string_view part : split_at(field, '+')) {
      const std::int64_t cores = whole_number(part).value_or(-1);
      if (cores < 0 || cores > kMaxCores) fail_cores(field);
      step.host_cores.push_back(cores);
      all += cores;
    }
    if (all < 1 || all > kMaxCores) fail_cores(field);
    step.cores = all;
  }

  [[noreturn]] void fail_cores(std::string_view field) const {
    reader_.fail(fmt::format("cores {} are not one number for each host", excerpt(field)),
                 fmt::format("whole numbers with a sum from 1 to {}, such as 4+2+2", kMaxCores));
  }

  [[nodiscard]] std::int64_t read_number(std::string_view what, std::string_view field,
                                         std::int64_t max) const {
    const auto value = whole_number(field);
    if (value && *value >= 1 && *value <= max) return *value;
    reader_.fail(fmt::format("{} {} {}", what, excerpt(field), detail::flaw_of(field)),
                 fmt::format("a whole number from 1 to {}", max));
  }

  TextReader reader_;
  std::int64_t expected_step_ = 0;
  char separator_ = ',';
  std::size_t columns_ = 0;
  // The fields of the current line.
  detail::CsvFields cells_;
};

}  // namespace

Trace Trace::parse_csv(std::string_view text, std::string source, TraceEnd end) {
  std::vector<TraceStep> steps = Parser(TextReader::of(text, source)).steps();
  Trace trace(std::move(steps), end, std::move(source));
  trace.from_csv_ = true;
  return trace;
}

Trace Trace::read_csv(const std::filesystem::path& path, TraceEnd end) {
  const std::string text = TextReader::open(path, "the trace",
                                            fmt::format("a CSV file with the header '{}' or '{}'",
                                                        kHeader, kHeaderWithCores))
                               .rest();
  return parse_csv(text, path.string(), end);
}

std::string Trace::to_csv() const {
  const bool cores = std::any_of(steps_.begin(), steps_.end(),
                                 [](const TraceStep& step) { return step.cores.has_value(); });
  std::string text = fmt::format("{}\n", cores ? kHeaderWithCores : kHeader);
  std::int64_t index = 0;
  for (const TraceStep& step : steps_) {
    fmt::format_to(std::back_inserter(text), "{},{}", index++, step.batch_size);
    if (cores) text += ',';
    if (!step.host_cores.empty()) {
      fmt::format_to(std::back_inserter(text), "{}", fmt::join(step.host_cores, "+"));
    } else if (step.cores) {
      fmt::format_to(std::back_inserter(text), "{}", *step.cores);
    }
    text += '\n';
  }
  return text;
}

}  // namespace rubato
