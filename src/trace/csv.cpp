#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>
#include <rubato/trace/trace.hpp>

#include "core/split.hpp"
#include "csv_line.hpp"
#include "trace/field.hpp"
#include "trace/text_reader.hpp"

namespace rubato {

namespace {

using detail::excerpt;
using detail::is_blank;
using detail::is_name;
using detail::kByteOrderMark;
using detail::kSeparators;
using detail::whole_number;

constexpr std::string_view kHeader = "step,batchsize";
constexpr std::string_view kHeaderWithCores = "step,batchsize,cores";
constexpr std::array<std::string_view, 3> kColumns{"step", "batchsize", "cores"};

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : source_(source), rest_(text) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    // The old end of line is one only where there is no other.
    line_end_ = rest_.find('\n') == std::string_view::npos ? '\r' : '\n';
  }

  std::vector<TraceStep> steps() {
    if (is_blank(rest_)) {
      throw Error(
          fmt::format("{}: the file is empty; accepted: the header '{}' or '{}', and a row "
                      "for each step",
                      source_, kHeader, kHeaderWithCores));
    }
    read_header();
    drop_empty_lines();
    if (rest_.empty()) fail("no rows follow the header", "a row for each step, such as '0,128'");
    std::vector<TraceStep> steps;
    while (!rest_.empty()) {
      next_line();
      steps.push_back(read_row());
    }
    return steps;
  }

 private:
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const {
    throw Error(fmt::format("{}:{}: {}; accepted: {}", source_, line_number_, wrong, accepted));
  }

  void next_line() {
    const std::size_t end = rest_.find(line_end_);
    set_line(rest_.substr(0, end));
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    ++line_number_;
  }

  void set_line(std::string_view line) {
    while (line.ends_with('\r')) line.remove_suffix(1);
    line_ = line;
  }

  // At the end; a spreadsheet writes lines of separators for rows that were emptied.
  void drop_empty_lines() {
    while (!rest_.empty()) {
      std::string_view text = rest_;
      if (text.ends_with(line_end_)) text.remove_suffix(1);
      const std::size_t before = text.rfind(line_end_);
      const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
      set_line(text.substr(begin));
      if (!is_empty_line()) return;
      rest_ = rest_.substr(0, begin);
    }
  }

  [[nodiscard]] bool is_empty_line() {
    if (is_blank(line_)) return true;
    detail::split_csv(line_, separator_, cells_);
    return cells_.empty();
  }

  // Whether the line is a header with that separator.
  [[nodiscard]] bool is_header(char separator) {
    detail::split_csv(line_, separator, cells_);
    cells_.drop_empty_beyond(2);
    const auto& names = cells_.fields;
    return cells_.flaw.empty() && (names.size() == 2 || names.size() == kColumns.size()) &&
           std::equal(names.begin(), names.end(), kColumns.begin(), is_name);
  }

  void read_header() {
    next_line();
    for (const char separator : kSeparators) {
      if (!is_header(separator)) continue;
      separator_ = separator;
      columns_ = cells_.fields.size();
      return;
    }
    const std::string accepted = fmt::format("'{}' or '{}'", kHeader, kHeaderWithCores);
    if (line_.starts_with("\xFF\xFE") || line_.starts_with("\xFE\xFF")) {
      fail("the file is UTF-16", "UTF-8");
    }
    detail::split_csv(line_, kSeparators.front(), cells_);
    if (is_number(cells_.fields.front())) fail("the header is missing", accepted);
    fail(fmt::format("{} is no header of a trace", excerpt(line_)), accepted);
  }

  TraceStep read_row() {
    if (is_empty_line()) {
      fail("a blank line before the end of the trace", fmt::format("the row of {}", next_step()));
    }
    if (!cells_.flaw.empty()) {
      fail(fmt::format("{} in {}", cells_.flaw, excerpt(line_)), "a number in each field");
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

  // A row without its last field is refused: so is the end of a file that was cut off.
  void require_columns(std::size_t count) const {
    if (count == columns_) return;
    const std::string separator = separator_ == '\t' ? "<tab>" : std::string(1, separator_);
    fail(fmt::format("{} field{} in {}", count, count == 1 ? "" : "s", excerpt(line_)),
         fmt::format("{}, as the header says ({})", columns_,
                     fmt::join(kColumns.begin(), kColumns.begin() + columns_, separator)));
  }

  // The published trace of the original's MNIST example counts 0 to 9 and then 0 to 799: traces are
  // appended to each other as they are. A first row that merely stands there twice is no such
  // trace.
  [[nodiscard]] bool may_begin_again() const { return expected_step_ >= 2; }

  [[nodiscard]] std::string next_step() const {
    return fmt::format("step {}{}", expected_step_,
                       may_begin_again() ? ", or 0 where another trace is appended" : "");
  }

  void read_step(std::string_view field) {
    const std::int64_t step = whole_number(field).value_or(-1);
    if (step < 0) {
      fail(fmt::format("{} is no step", excerpt(field)), next_step());
    }
    if (step == 0 && may_begin_again()) expected_step_ = 0;
    if (step < expected_step_) fail(fmt::format("step {} stands here again", step), next_step());
    if (step > expected_step_) {
      fail(fmt::format("step {} stands where step {} is missing", step, expected_step_),
           next_step());
    }
    ++expected_step_;
  }

  // A number, or one for each host with '+' between them.
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
    fail(fmt::format("cores {} are no number for each host", excerpt(field)),
         fmt::format("whole numbers that come to 1 to {}, such as 4+2+2", kMaxCores));
  }

  [[nodiscard]] std::int64_t read_number(std::string_view what, std::string_view field,
                                         std::int64_t max) const {
    const auto value = whole_number(field);
    if (value && *value >= 1 && *value <= max) return *value;
    fail(fmt::format("{} {} {}", what, excerpt(field), detail::flaw_of(field)),
         fmt::format("a whole number from 1 to {}", max));
  }

  std::string_view source_;
  std::string_view rest_;
  std::string_view line_;
  std::int64_t line_number_ = 0;
  std::int64_t expected_step_ = 0;
  char line_end_ = '\n';
  char separator_ = ',';
  std::size_t columns_ = 0;
  // Of the line.
  detail::CsvFields cells_;
};

}  // namespace

Trace Trace::parse_csv(std::string_view text, std::string source, TraceEnd end) {
  std::vector<TraceStep> steps = Parser(text, source).steps();
  Trace trace(std::move(steps), end, std::move(source));
  trace.from_csv_ = true;
  return trace;
}

Trace Trace::read_csv(const std::filesystem::path& path, TraceEnd end) {
  const std::string text =
      detail::TextReader::open(
          path, "the trace",
          fmt::format("a CSV file with the header '{}' or '{}'", kHeader, kHeaderWithCores))
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
