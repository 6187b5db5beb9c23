#include "metrics_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// Number of bytes that the part read so far is recognised by. Lines of metrics end with times in
// nanoseconds, so no two have the same last bytes.
constexpr std::size_t kKnownBy = 256;
// Stays in the cache while its lines are read.
constexpr std::size_t kChunk = 1 << 17;

[[noreturn]] void cannot_read(const std::filesystem::path& file) {
  throw_error("{}: cannot read: {}", file.string(), std::generic_category().message(errno));
}

// Appends `count` bytes, or fewer at the end of the file. Returns how many there were.
std::size_t append_bytes(std::string& to, std::ifstream& in, std::int64_t offset, std::size_t count,
                         const std::filesystem::path& file) {
  const std::size_t size = to.size();
  to.resize(size + count);
  in.clear();
  in.seekg(offset).read(to.data() + size, static_cast<std::streamsize>(count));
  if (in.bad()) cannot_read(file);
  const auto there = static_cast<std::size_t>(in.gcount());
  to.resize(size + there);
  return there;
}

}  // namespace

void GrowingLines::rewind() {
  bytes_ = 0;
  last_bytes_.clear();
  line_ = 0;
}

void GrowingLines::read(const std::function<void()>& begin_anew,
                        const std::function<void(std::string_view line)>& take) {
  if (is_there(file_)) require_regular_file(file_);
  std::ifstream in(file_, std::ios::binary);
  if (!in.is_open() && errno != ENOENT) cannot_read(file_);
  const auto known = static_cast<std::int64_t>(last_bytes_.size());
  std::string there;
  if (in.is_open()) append_bytes(there, in, bytes_ - known, last_bytes_.size(), file_);
  if (bytes_ > 0 && there != last_bytes_) {
    rewind();
    begin_anew();
  }
  has_rest_ = false;
  if (!in.is_open()) return;
  std::string rest;
  std::int64_t offset = bytes_;
  while (true) {
    has_rest_ = !rest.empty();
    const std::size_t count = append_bytes(rest, in, offset, kChunk, file_);
    if (count == 0) return;
    offset += static_cast<std::int64_t>(count);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      ++line_;
      take(std::string_view(rest).substr(begin, end - begin));
    }
    if (begin == 0) continue;
    bytes_ += static_cast<std::int64_t>(begin);
    const std::size_t last = std::min(begin, kKnownBy);
    last_bytes_.append(rest, begin - last, last);
    last_bytes_.erase(0, last_bytes_.size() - std::min(last_bytes_.size(), kKnownBy));
    rest.erase(0, begin);
  }
}

namespace {

// The kind of a line; empty if it has none. A line that begins like those that a run writes is not
// parsed.
std::string kind_of(std::string_view text) {
  constexpr std::string_view kBegin = R"({"kind":")";
  const std::size_t end = text.find('"', kBegin.size());
  if (text.starts_with(kBegin) && end != std::string_view::npos) {
    return std::string(text.substr(kBegin.size(), end - kBegin.size()));
  }
  const auto line =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto kind = line.is_object() ? line.find("kind") : line.end();
  return kind != line.end() && kind->is_string() ? kind->get<std::string>() : std::string();
}

}  // namespace

MetricsLine::MetricsLine(const GrowingLines& lines, std::string_view text)
    : lines_(lines), text_(text), kind_(kind_of(text)) {
  if (kind_.empty()) reject("is not a line of metrics");
}

Cells MetricsLine::cells() const {
  return checked([&] { return cells_of(record_info(kind_).columns, text_); });
}

void MetricsLine::reject(std::string_view why) const {
  throw_error("{}:{}: {}; accepted: what a run has written (docs/records.md)",
              lines_.file().string(), lines_.line(), why);
}

void read_metrics(GrowingLines& lines, const std::function<void()>& begin_anew,
                  const std::function<void(const MetricsLine& line)>& take) {
  lines.read(begin_anew, [&](std::string_view text) { take(MetricsLine(lines, text)); });
}

void read_metrics(GrowingLines& lines, const std::function<void(const MetricsLine& line)>& take) {
  // The first read() never begins anew.
  lines.rewind();
  read_metrics(
      lines, [] {}, take);
}

void require_metrics(const std::filesystem::path& file) {
  // Opening a pipe would wait for somebody who writes to it.
  if (is_there(file)) require_regular_file(file);
  if (std::ifstream(file)) return;
  throw_error("{}: cannot be read: {}; accepted: the folder of a run", file.string(),
              std::generic_category().message(errno));
}

}  // namespace rubato
