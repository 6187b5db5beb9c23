#include "machine_lives.hpp"

#include <charconv>
#include <chrono>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/seconds.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "steps/trace/availability_parts.hpp"

namespace rubato {

namespace {

using detail::TextReader;

constexpr std::string_view kLife =
    R"({"seconds": 5400, "preempted": true}, which may have "inserted": "2019-03-25T12:23:13Z")";

// Reads the numbers of a time from its left.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : text_(text) {}

  // The number of exactly `digits` digits that comes next; clears good() if there is none.
  int number(std::size_t digits) {
    int value = 0;
    const std::string_view part = text_.substr(0, digits);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    good_ = good_ && part.size() == digits && error == std::errc() && value >= 0 &&
            end == part.data() + digits;
    text_.remove_prefix(part.size());
    return value;
  }
  // True if one of `characters` comes next, which is then skipped.
  bool skip(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  void require(std::string_view characters) { good_ = skip(characters) && good_; }
  [[nodiscard]] char next() const { return text_.empty() ? ' ' : text_.front(); }
  [[nodiscard]] bool good() const { return good_ && text_.empty(); }

 private:
  std::string_view text_;
  bool good_ = true;
};

// A time as RFC 3339 writes it, in hours since 1970; nothing for other texts.
std::optional<double> hours_of_time(std::string_view text) {
  using std::chrono::sys_days;
  TimeText time(text);
  const int year = time.number(4);
  time.require("-");
  const int month = time.number(2);
  time.require("-");
  const int day = time.number(2);
  time.require("Tt ");
  const int hour = time.number(2);
  time.require(":");
  const int minute = time.number(2);
  time.require(":");
  double second = time.number(2);
  if (time.skip(".")) {
    for (double unit = 0.1; time.next() >= '0' && time.next() <= '9'; unit /= 10) {
      second += unit * time.number(1);
    }
  }
  int zone = 0;
  if (!time.skip("Zz")) {
    const int sign = time.next() == '-' ? -1 : 1;
    time.require("+-");
    const int hours = time.number(2);
    time.require(":");
    zone = sign * (60 * hours + time.number(2));
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!time.good() || !date.ok()) return std::nullopt;
  const auto days = static_cast<double>(sys_days(date).time_since_epoch().count());
  return days * 24 + hour + (minute - zone) / 60.0 + second / kSecondsOfHour;
}

MachineLife life_of(const TextReader& reader) {
  const auto json = nlohmann::json::parse(reader.line(), nullptr, /*allow_exceptions=*/false);
  const std::optional<double> seconds = number_at(json, "seconds");
  if (!seconds || !(*seconds >= 0 && *seconds <= kMaxAvailabilitySeconds)) {
    reader.fail(json.is_object() ? "no 'seconds' from 0 to 315576000 (ten years)"
                                 : fmt::format("{} is not a life", detail::excerpt(reader.line())),
                kLife);
  }
  const auto preempted = json.find("preempted");
  if (preempted == json.end()) {
    reader.fail("no 'preempted'", "true or when the provider ended it; false or null for others");
  }
  MachineLife life{.hours = *seconds / kSecondsOfHour,
                   .preempted = !preempted->is_null() && *preempted != false};
  const auto inserted = json.find("inserted");
  if (inserted == json.end() || inserted->is_null()) return life;
  if (inserted->is_string()) life.begin = hours_of_time(inserted->get<std::string>());
  if (!life.begin) {
    reader.fail(fmt::format("'inserted' is {}", detail::excerpt(json_text(*inserted))),
                R"(a time such as "2019-03-25T12:23:13.052-07:00", or null)");
  }
  return life;
}

std::vector<MachineLife> import_json(TextReader& reader) {
  std::vector<MachineLife> lives;
  while (reader.next_line()) {
    if (!detail::is_blank(reader.line())) lives.push_back(life_of(reader));
  }
  return lives;
}

}  // namespace

std::variant<std::vector<MachineLife>, Availability> read_machines(
    const std::filesystem::path& path, std::optional<AvailabilityFormat> format,
    const DeviceColumns& columns) {
  TextReader reader = TextReader::open(
      path, "the machines", "JSON lines, events or samples of an availability (docs/traces.md)");
  const bool has_columns = !columns.column.empty() || !columns.zone.empty();
  if (!format && reader.beginning().starts_with('{')) {
    if (!has_columns) return import_json(reader);
    throw_error("{}: JSON lines have no columns; accepted: the file alone", reader.source());
  }
  if (!format) format = detail::format_of(reader.beginning());
  if (format == AvailabilityFormat::events && !has_columns) return detail::import_lives(reader);
  return detail::read_availability(reader, format, columns);
}

}  // namespace rubato
