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

#include "base/core/tables/field.hpp"
#include "importers.hpp"

namespace rubato::detail {

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
