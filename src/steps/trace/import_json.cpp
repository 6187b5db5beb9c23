#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "availability_parts.hpp"
#include "base/core/text/csv.hpp"

namespace rubato::detail {

namespace {

constexpr std::string_view kCounts = R"({"metadata": {"gap_seconds": 60}, "data": [8, 4]})";

// A count that holds from an index until the next run.
struct CountRun {
  std::int64_t index;
  std::int64_t count;
};

// Takes the gap and the counts while the parser runs, and ignores other keys.
class CountsDocument {
 public:
  using Json = nlohmann::json;

  // Negative if the gap is missing.
  double gap = -1;
  bool has_data = false;
  std::vector<CountRun> runs;
  std::int64_t counts = 0;
  // The error and what would be accepted; empty if there is none.
  std::string flaw;

  // The parser calls the following functions; false stops it.
  bool null() { return value("null"); }
  bool boolean(bool flag) { return value(flag ? "true" : "false"); }
  bool binary(Json::binary_t& /*bytes*/) { return value("binary"); }
  bool number_integer(Json::number_integer_t whole) { return number(static_cast<double>(whole)); }
  bool number_unsigned(Json::number_unsigned_t whole) { return number(static_cast<double>(whole)); }
  bool number_float(Json::number_float_t real, const Json::string_t& /*text*/) {
    return number(real);
  }
  bool string(Json::string_t& /*text*/) { return value("a text"); }
  bool start_object(std::size_t /*size*/) {
    if (depth_ == 1 && key_ == "metadata") in_metadata_ = true;
    return open("an object");
  }
  bool start_array(std::size_t /*size*/) {
    if (depth_ != 1 || key_ != "data") return open("a list");
    if (has_data) return fail("'data' is there twice", "one list of counts");
    has_data = true;
    in_data_ = true;
    ++depth_;
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(Json::string_t& name) {
    if (depth_ == 1) key_ = name;
    if (depth_ == 2) inner_key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    return fail(fmt::format("invalid JSON from character {} on", position), kCounts);
  }

 private:
  bool fail(std::string_view wrong, std::string_view accepted) {
    flaw = fmt::format("{}; accepted: {}", wrong, accepted);
    return false;
  }
  // Handles a value that is not a number.
  bool value(std::string_view what) {
    if (in_data_ && depth_ == 2) {
      return fail(fmt::format("count {} is {}", counts + 1, what), whole_range(0, kMaxCores));
    }
    if (depth_ == 1 && key_ == "data") return fail("'data' is not a list", "a list of counts");
    return true;
  }
  bool number(double number) {
    if (in_metadata_ && depth_ == 2 && inner_key_ == "gap_seconds") {
      gap = number;
      if (gap > 0 && gap <= kMaxAvailabilitySeconds && microseconds_of(gap) > 0) return true;
      return fail(fmt::format("a gap of {} seconds", gap),
                  fmt::format("more than 0, up to {}", kMaxAvailabilitySeconds));
    }
    if (!in_data_ || depth_ != 2) return value("a number");
    if (!(number >= 0 && number <= static_cast<double>(kMaxCores)) ||
        number != std::floor(number)) {
      return fail(fmt::format("count {} is {}", counts + 1, number), whole_range(0, kMaxCores));
    }
    const auto count = static_cast<std::int64_t>(number);
    if (runs.empty() || runs.back().count != count) runs.push_back({counts, count});
    ++counts;
    return true;
  }
  bool open(std::string_view what) {
    if (!value(what)) return false;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    if (depth_ == 1) in_metadata_ = in_data_ = false;
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_data_ = false;
  // The last keys of the document, and of the open object within it.
  std::string key_;
  std::string inner_key_;
};

}  // namespace

AvailabilityParts import_counts(TextReader& reader) {
  const auto fail = [&](const std::string& flaw) {
    throw Error(fmt::format("{}: {}", reader.source(), flaw));
  };
  CountsDocument document;
  const std::string text = reader.rest();
  const bool good = nlohmann::json::sax_parse(text, &document);
  if (!document.flaw.empty()) fail(document.flaw);
  if (!good || !document.has_data || document.gap < 0) {
    fail(fmt::format("there is no {}; accepted: {}", document.has_data ? "gap_seconds" : "'data'",
                     document.has_data ? kCounts : kFormatsAccepted));
  }
  if (document.counts == 0) fail("'data' is empty; accepted: a list of counts");
  const double length = document.gap * static_cast<double>(document.counts);
  if (length > kMaxAvailabilitySeconds) {
    fail(fmt::format("{} counts every {} s are {:.0f} s; accepted: up to {} s (ten years)",
                     document.counts, document.gap, length, kMaxAvailabilitySeconds));
  }
  ChangeList changes;
  const std::int64_t gap = microseconds_of(document.gap);
  for (const auto& [index, count] : document.runs) changes.add(index * gap, count);
  return {.changes = changes.take(),
          .length = seconds_of(gap * document.counts),
          .sample_gap = seconds_of(gap)};
}

namespace {

constexpr std::string_view kRecord = R"({"Time": 63, "GPUs": 4})";

// Takes a list of objects of numbers while the parser runs. The keys of the first object are the
// columns.
class RecordsDocument {
 public:
  using Json = nlohmann::json;

  RecordsDocument(const std::string& source, const DeviceColumns& wanted)
      : source_(source),
        wanted_(wanted),
        rows_([this](auto wrong, auto accepted) { fail(wrong, accepted); }) {}

  [[nodiscard]] AvailabilityParts all() { return rows_.all(source_); }

  // The parser calls the following functions.
  bool null() { return value({}); }
  bool boolean(bool /*flag*/) { return value({.flaw = "true or false"}); }
  bool binary(Json::binary_t& /*bytes*/) { return fail_value("binary"); }
  bool string(Json::string_t& /*text*/) { return value({.flaw = "a text"}); }
  bool number_integer(Json::number_integer_t whole) { return number(static_cast<double>(whole)); }
  bool number_unsigned(Json::number_unsigned_t whole) { return number(static_cast<double>(whole)); }
  bool number_float(Json::number_float_t real, const Json::string_t& /*text*/) {
    return number(real);
  }
  bool start_array(std::size_t /*size*/) {
    if (depth_ > 0) return fail_value("a list");
    ++depth_;
    return true;
  }
  bool start_object(std::size_t /*size*/) {
    if (depth_ > 1) return fail_value("an object");
    if (depth_ == 0) fail_form();
    ++depth_;
    ++records_;
    values_.assign(names_.size(), {});
    return true;
  }
  bool key(Json::string_t& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    at_ = static_cast<std::size_t>(found - names_.begin());
    if (found != names_.end()) return true;
    if (records_ > 1) {
      fail(fmt::format("it has {}, which the first record does not have", excerpt(name)), kRecord);
    }
    names_.push_back(std::move(name));
    values_.emplace_back();
    return true;
  }
  bool end_object() {
    --depth_;
    if (records_ == 1) choose_columns();
    take_record();
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    throw Error(fmt::format("{}: invalid JSON from character {} on; accepted: {}", source_,
                            position, kFormatsAccepted));
  }

 private:
  // A number, nothing, or something else, which matters only in the columns that are used.
  struct Value {
    std::optional<double> number{};
    std::string_view flaw{};
  };

  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const {
    throw Error(fmt::format("{}: record {}: {}; accepted: {}", source_, records_, wrong, accepted));
  }
  [[noreturn]] void fail_form() const {
    throw Error(
        fmt::format("{}: it is not a list of records; accepted: {}", source_, kFormatsAccepted));
  }
  [[noreturn]] bool fail_value(std::string_view what) const {
    if (depth_ < 2) fail_form();
    fail(fmt::format("{} is {}", excerpt(names_[at_]), what), kRecord);
  }
  bool value(Value value) {
    if (depth_ < 2) fail_form();
    values_[at_] = value;
    return true;
  }
  bool number(double number) { return value({.number = number}); }

  void choose_columns() {
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    auto columns =
        find_columns(names, wanted_, [this](auto wrong, auto accepted) { fail(wrong, accepted); });
    if (!columns) {
      fail(fmt::format("it has {}", excerpt(fmt::to_string(fmt::join(names, ", ")))),
           kFormatsAccepted);
    }
    columns_ = *std::move(columns);
  }
  // The number in a column that is used; empty if it is null or missing.
  [[nodiscard]] std::optional<double> number_at(std::size_t i) const {
    const Value& value = values_[i];
    if (!value.flaw.empty()) fail(fmt::format("{} is {}", excerpt(names_[i]), value.flaw), kRecord);
    return value.number;
  }
  void take_record() {
    const std::optional<double> time = number_at(columns_.time);
    if (!time) fail("it has no time", kRecord);
    std::int64_t sum = 0;
    std::size_t missing = 0;
    for (const std::size_t i : columns_.counts) {
      const std::optional<double> count = number_at(i);
      if (!count) {
        ++missing;
        continue;
      }
      if (!(*count >= 0 && *count <= static_cast<double>(kMaxCores)) ||
          *count != std::floor(*count)) {
        fail(fmt::format("{} is {}", excerpt(names_[i]), *count), whole_range(0, kMaxCores));
      }
      sum += static_cast<std::int64_t>(*count);
    }
    const bool has_none = missing == columns_.counts.size();
    if (missing > 0 && !has_none) fail("a number of devices is missing", kRecord);
    rows_.take(*time, has_none ? std::nullopt : std::optional(sum));
  }

  const std::string& source_;
  const DeviceColumns& wanted_;
  SampleRows rows_;
  int depth_ = 0;
  std::int64_t records_ = 0;
  std::vector<std::string> names_;
  SampleColumns columns_{};
  // The values of the open record, and the index of the next value.
  std::vector<Value> values_;
  std::size_t at_ = 0;
};

}  // namespace

AvailabilityParts import_records(TextReader& reader, const DeviceColumns& columns) {
  RecordsDocument document(reader.source(), columns);
  const std::string text = reader.rest();
  static_cast<void>(nlohmann::json::sax_parse(text, &document));
  return document.all();
}

}  // namespace rubato::detail
