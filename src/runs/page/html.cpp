// All text from outside passes through escaped() or script_json(). The page is self-contained: its
// security policy names the SHA-256 of its own scripts and style, and forbids all others and every
// request (docs/adr/0064). to_html() fills the template web/page.html in one pass. The data of the
// charts are JSON in a script element, in which every '<' is escaped, because the element would
// otherwise end at a "</script" within a string.

#include "html.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <rubato/base/error.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "web_files.hpp"

namespace rubato::page {

namespace {

// A cell with a longer text can be wrapped into several lines.
constexpr std::size_t kLong = 24;

// Wraps a table that may be too wide, so that it can be scrolled horizontally, also by keyboard.
std::string scrolling(std::string_view title, const std::string& table) {
  return fmt::format(
      "<div class=\"scroll\" role=\"group\" aria-label=\"{}\" tabindex=\"0\">\n{}</div>\n",
      escaped(title), table);
}

std::string header_of(const AnswerDocument::Table& table) {
  std::string html = "<thead><tr>";
  for (std::size_t i = 0; i < table.rows.front().size(); ++i) {
    const std::string& text = table.rows.front()[i];
    const char* const right = table.alignment[i] == Column::right ? " class=\"right\"" : "";
    // An empty header cell would tell users of a screen reader nothing.
    html += text.empty() ? "<td></td>"
                         : fmt::format("<th scope=\"col\"{}>{}</th>", right, escaped(text));
  }
  return html + "</tr></thead>\n";
}

std::string row_of(const AnswerDocument::Table& table, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i < table.keys) {
      html += fmt::format("<th scope=\"row\">{}</th>", escaped(cells[i]));
    } else {
      const char* const looks = table.alignment[i] == Column::right ? " class=\"right\""
                                : cells[i].size() > kLong           ? " class=\"long\""
                                                                    : "";
      html += fmt::format("<td{}>{}</td>", looks, escaped(cells[i]));
    }
  }
  return html + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::array<std::string_view, kSpecial.size()> kEntities{"&amp;", "&lt;", "&gt;",
                                                                    "&quot;", "&#39;"};
  std::string html;
  html.reserve(text.size());
  for (const char letter : text) {
    const std::size_t special = kSpecial.find(letter);
    if (special == std::string_view::npos) {
      html += letter;
    } else {
      html += kEntities.at(special);
    }
  }
  return html;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string text = json_text(json);
  // JSON has '<' only within strings, so it can be replaced everywhere.
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

std::string paragraph(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("<p>{}</p>\n", escaped(text));
}

std::string list(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string html = "<ul>\n";
  for (const std::string& text : texts) html += fmt::format("<li>{}</li>\n", escaped(text));
  return html + "</ul>\n";
}

std::string folded(std::string_view heading, std::string_view text) {
  return fmt::format(
      "<details><summary>{0}</summary>\n<pre tabindex=\"0\" role=\"group\" "
      "aria-label=\"{0}\">{1}</pre></details>\n",
      escaped(heading), escaped(text));
}

std::string folded_html(std::string_view heading, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(heading), html);
}

std::string table(const AnswerDocument::Table& table) {
  std::string rows;
  for (std::size_t i = 1; i < table.rows.size(); ++i) rows += row_of(table, table.rows[i]);
  std::string html = scrolling(
      table.title, fmt::format("<table><caption>{}</caption>\n{}<tbody>\n{}</tbody></table>\n",
                               escaped(table.title), header_of(table), rows));
  for (const std::string& note : table.notes) html += paragraph(note);
  return html;
}

std::string facts(std::string_view title, int level, const Rows& rows) {
  if (rows.empty()) return {};
  std::string html = fmt::format("<h{0}>{1}</h{0}>\n<dl class=\"facts\">\n", level, escaped(title));
  for (const auto& [name, value] : rows) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  }
  return html + "</dl>\n";
}

namespace {

// The source expressions 'sha256-BASE64' of the texts, each after a space.
std::string sources_of(std::span<const std::string_view> texts) {
  std::string sources;
  for (const std::string_view text : texts) {
    const Sha256::Digest digest = Sha256::digest_of(text);
    // Base64 has four letters for three bytes; EVP_EncodeBlock() adds a zero at the end.
    std::array<unsigned char, (digest.size() + 2) / 3 * 4 + 1> base64{};
    const int length =
        EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
    const std::string letters(base64.begin(), base64.begin() + length);
    sources += fmt::format(" 'sha256-{}'", letters);
  }
  return sources;
}

}  // namespace

std::string security_policy(std::span<const std::string_view> scripts,
                            std::span<const std::string_view> styles) {
  return fmt::format(
      "default-src 'none'; script-src{}; style-src{}; base-uri 'none'; form-action 'none'",
      sources_of(scripts), sources_of(styles));
}

namespace {

using Texts = std::array<std::pair<std::string_view, std::string_view>, 9>;

// The template with a text inserted for each name in double braces. Inserted texts are not searched
// for names again.
std::string filled(std::string_view form, const Texts& texts) {
  std::string page;
  while (!form.empty()) {
    const std::size_t begin = std::min(form.find("{{"), form.size());
    page += form.substr(0, begin);
    form.remove_prefix(begin);
    if (form.empty()) break;
    const std::size_t end = form.find("}}");
    const std::string_view name = form.substr(2, end - 2);
    for (const auto& [key, text] : texts) {
      if (key == name) page += text;
    }
    form.remove_prefix(end + 2);
  }
  return page;
}

}  // namespace

std::filesystem::path chart_library_file() {
  return std::string(kLibraryFile);
}

std::string read_chart_library(const std::filesystem::path& file) {
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    throw_error("{}; the charts need it: apt-get install libjs-d3 (Debian's package)",
                error.what());
  }
  // HTML could end or hide the script at these texts, and browsers hash every line end as '\n', so
  // a library with '\r' would not match its hash.
  if (text.find("</script") == std::string::npos && text.find("<!--") == std::string::npos &&
      text.find('\r') == std::string::npos) {
    return text;
  }
  throw_error("{}: cannot be embedded in a page; accepted: d3.min.js of libjs-d3", file.string());
}

std::string to_html(const Document& document, const std::string& library) {
  const std::array<std::string_view, 2> scripts{library, kPageJs};
  const std::array<std::string_view, 1> styles{kPageCss};
  const std::string policy = security_policy(scripts, styles);
  const std::string title = escaped(document.title);
  const std::string data = script_json(document.charts);
  return filled(kPageHtml, {{{"policy", policy},
                             {"title", title},
                             {"style", kPageCss},
                             {"answer", document.answer},
                             {"end", document.end},
                             {"data", data},
                             {"license", kLibraryLicense},
                             {"library", library},
                             {"script", kPageJs}}});
}

}  // namespace rubato::page
