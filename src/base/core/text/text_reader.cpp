#include "text_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/core/throw_error.hpp"
#include "csv.hpp"

namespace rubato::detail {

namespace {

constexpr std::size_t kLongestLine = 1 << 24;

// The separator in a first line such as "sep=;", with or without quotes.
std::optional<char> separator_in(std::string_view beginning) {
  std::string_view line = beginning.substr(0, beginning.find_first_of("\r\n"));
  if (line.size() == beginning.size()) return std::nullopt;
  const bool quoted = line.size() > 2 && line.starts_with('"') && line.ends_with('"');
  if (quoted) line = line.substr(1, line.size() - 2);
  const bool named = line.size() == 5 && is_name(line.substr(0, 4), "sep=") &&
                     std::ranges::find(kSeparators, line.back()) != kSeparators.end();
  return named ? std::optional(line.back()) : std::nullopt;
}

}  // namespace

TextReader::TextReader(std::unique_ptr<std::istream> in, std::string source)
    : in_(std::move(in)), source_(std::move(source)) {
  fill();
  require_no_utf16(beginning(), source_);
  if (beginning().starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
  if (beginning().find('\n') == std::string_view::npos) line_end_ = '\r';
  separator_ = separator_in(beginning());
  if (separator_) next_line();
}

TextReader TextReader::open(const std::filesystem::path& path, std::string_view what,
                            std::string_view accepted) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const auto fail = [&](std::string_view wrong) {
    throw_error("cannot read {} {}: {}; accepted: {}", what, path.string(), wrong, accepted);
  };
  if (status.type() == std::filesystem::file_type::not_found) fail("no such file");
  if (error) fail(error.message());
  // A device may be endless; files and pipes end.
  if (!is_regular_file(status) && !is_fifo(status)) {
    fail(is_directory(status) ? "it is a folder" : "it is not a file");
  }
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) fail(std::generic_category().message(errno));
  return {std::move(file), path.string()};
}

TextReader TextReader::of(std::string_view text, std::string source) {
  return {std::make_unique<std::istringstream>(std::string(text)), std::move(source)};
}

bool TextReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPieceOfText);
  in_->read(buffer_.data() + before, kPieceOfText);
  buffer_.resize(before + static_cast<std::size_t>(in_->gcount()));
  if (in_->bad()) throw_error("cannot read {}: reading failed", source_);
  return buffer_.size() > before;
}

bool TextReader::next_line() {
  std::size_t searched = 0;
  std::size_t end = std::string::npos;
  while (true) {
    end = buffer_.find(line_end_, begin_ + searched);
    if (end != std::string::npos) break;
    searched = buffer_.size() - begin_;
    if (searched > kLongestLine) {
      ++line_number_;
      fail("the line has more than 16 MiB", "an event or a row in each line");
    }
    if (!fill()) break;
  }
  line_ = beginning();
  if (end == std::string::npos) {
    if (line_.empty()) return false;
    begin_ = buffer_.size();
  } else {
    line_ = line_.substr(0, end - begin_);
    begin_ = end + 1;
  }
  while (line_.ends_with('\r')) line_.remove_suffix(1);
  ++line_number_;
  return true;
}

std::string TextReader::rest() {
  while (fill()) {
  }
  std::string text = buffer_.substr(begin_);
  if (separator_ && line_number_ == 1) {
    text.insert(0, fmt::format("sep={}{}", *separator_, line_end_));
  }
  buffer_.clear();
  begin_ = 0;
  return text;
}

void TextReader::fail(std::string_view wrong, std::string_view accepted) const {
  throw_error("{}:{}: {}; accepted: {}", source_, line_number_, wrong, accepted);
}

}  // namespace rubato::detail
