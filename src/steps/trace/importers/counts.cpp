#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "importers.hpp"
#include "steps/trace/microseconds.hpp"

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

}  // namespace rubato::detail
