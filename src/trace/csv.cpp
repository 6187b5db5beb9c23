#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kHeader = "step,batchsize";
constexpr std::string_view kHeaderWithCores = "step,batchsize,cores";
constexpr std::string_view kBlank = " \t\r\n";

// A piece of the file fit for a one-line message: short, and without control characters.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  if (text.size() > kLongest) shown += "...";
  return fmt::format("'{}'", shown);
}

std::string_view without_trailing_blank(std::string_view text) {
  const std::size_t last = text.find_last_not_of(kBlank);
  return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

bool is_number(std::string_view field) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error != std::errc::invalid_argument && end == field.data() + field.size();
}

// What keeps `field` from being a whole number from 1 to some limit; call only when something does.
std::string_view flaw_of(std::string_view field) {
  if (field.empty()) return "is empty";
  if (!is_number(field)) return "is no number";
  const bool whole = field.find_first_not_of("-0123456789") == std::string_view::npos;
  if (!whole) return "is no whole number";
  if (field.starts_with('-')) return "is negative";
  return field.find_first_not_of('0') == std::string_view::npos ? "is zero" : "is too large";
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : source_(source) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    rest_ = without_trailing_blank(text);
  }

  std::vector<TraceStep> steps() {
    if (rest_.empty()) {
      throw Error(
          fmt::format("{}: the file is empty; accepted: the header '{}' or '{}', and a row "
                      "for each step",
                      source_, kHeader, kHeaderWithCores));
    }
    read_header();
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
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    ++line_number_;
  }

  void read_header() {
    next_line();
    has_cores_ = line_ == kHeaderWithCores;
    if (has_cores_ || line_ == kHeader) return;
    const std::string accepted = fmt::format("'{}' or '{}'", kHeader, kHeaderWithCores);
    if (is_number(line_.substr(0, line_.find(',')))) fail("the header is missing", accepted);
    fail(fmt::format("{} is no header of a trace", excerpt(line_)), accepted);
  }

  TraceStep read_row() {
    if (without_trailing_blank(line_).empty()) {
      fail("a blank line before the end of the trace", fmt::format("the row of {}", next_step()));
    }
    std::array<std::string_view, 3> fields;
    split(has_cores_ ? std::span(fields) : std::span(fields).first(2));
    read_step(fields[0]);
    TraceStep step;
    step.batch_size = read_number("batch size", fields[1], kMaxBatchSize);
    if (!fields[2].empty()) step.cores = read_number("cores", fields[2], kMaxCores);
    return step;
  }

  void split(std::span<std::string_view> fields) const {
    std::size_t count = 0;
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = line_.find(',', begin);
      if (count < fields.size()) fields[count] = line_.substr(begin, end - begin);
      ++count;
      if (end == std::string_view::npos) break;
      begin = end + 1;
    }
    if (count == fields.size()) return;
    fail(fmt::format("{} field{} in {}", count, count == 1 ? "" : "s", excerpt(line_)),
         fmt::format("{}, as the header says ({})", fields.size(),
                     has_cores_ ? kHeaderWithCores : kHeader));
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
    std::int64_t step = -1;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), step);
    if (error != std::errc{} || end != field.data() + field.size() || step < 0) {
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

  [[nodiscard]] std::int64_t read_number(std::string_view what, std::string_view field,
                                         std::int64_t max) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool read = error == std::errc{} && end == field.data() + field.size();
    if (read && value >= 1 && value <= max) return value;
    fail(fmt::format("{} {} {}", what, excerpt(field), flaw_of(field)),
         fmt::format("a whole number from 1 to {}", max));
  }

  std::string_view source_;
  std::string_view rest_;
  std::string_view line_;
  std::int64_t line_number_ = 0;
  std::int64_t expected_step_ = 0;
  bool has_cores_ = false;
};

}  // namespace

Trace Trace::parse_csv(std::string_view text, std::string source, TraceEnd end) {
  std::vector<TraceStep> steps = Parser(text, source).steps();
  Trace trace(std::move(steps), end, std::move(source));
  trace.from_csv_ = true;
  return trace;
}

Trace Trace::read_csv(const std::filesystem::path& path, TraceEnd end) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const auto fail = [&](std::string_view wrong) {
    throw Error(
        fmt::format("cannot read the trace {}: {}; accepted: a CSV file with the header '{}' "
                    "or '{}'",
                    path.string(), wrong, kHeader, kHeaderWithCores));
  };
  if (status.type() == std::filesystem::file_type::not_found) fail("no such file");
  if (error) fail(error.message());
  // A device can go on for ever; a file and a pipe end.
  if (!is_regular_file(status) && !is_fifo(status)) {
    fail(is_directory(status) ? "it is a folder" : "it is no file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(std::generic_category().message(errno));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) fail("reading failed");
  return parse_csv(text, path.string(), end);
}

std::string Trace::to_csv() const {
  const bool cores = std::any_of(steps_.begin(), steps_.end(),
                                 [](const TraceStep& step) { return step.cores.has_value(); });
  std::string text = fmt::format("{}\n", cores ? kHeaderWithCores : kHeader);
  std::int64_t index = 0;
  for (const TraceStep& step : steps_) {
    fmt::format_to(std::back_inserter(text), "{},{}", index++, step.batch_size);
    if (cores) text += step.cores ? fmt::format(",{}", *step.cores) : ",";
    text += '\n';
  }
  return text;
}

}  // namespace rubato
