#include "document.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "html.hpp"
#include "security_policy.hpp"
#include "web_files.hpp"

namespace rubato::page {

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
    throw Error(fmt::format("{}; the charts need it: apt-get install libjs-d3 (Debian's package)",
                            error.what()));
  }
  // HTML could end or hide the script at these texts, and browsers hash every line end as '\n', so
  // a library with '\r' would not match its hash.
  if (text.find("</script") == std::string::npos && text.find("<!--") == std::string::npos &&
      text.find('\r') == std::string::npos) {
    return text;
  }
  throw Error(fmt::format("{}: cannot be embedded in a page; accepted: d3.min.js of libjs-d3",
                          file.string()));
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
