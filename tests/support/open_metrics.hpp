#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace rubato::test {

/// The text format of OpenMetrics 1.0, as far as gauges go, read strictly.
class OpenMetricsText {
 public:
  struct Sample {
    std::map<std::string, std::string> labels{};
    double value = 0;
  };

  explicit OpenMetricsText(const std::string& text) {
    if (!text.ends_with("\n# EOF\n")) fail(0, "does not end with # EOF");
    std::istringstream in(text);
    std::size_t number = 0;
    for (std::string line; std::getline(in, line) && violation_.empty();) read(++number, line);
  }

  /// The first thing that is wrong; empty where the text is valid.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const std::multimap<std::string, Sample>& samples() const { return samples_; }
  [[nodiscard]] bool contains(const std::string& name) const { return samples_.contains(name); }
  /// Of the one sample of that name.
  [[nodiscard]] double value(const std::string& name) const {
    return samples_.count(name) == 1 ? samples_.find(name)->second.value : -12345;
  }

 private:
  void fail(std::size_t number, const std::string& why) {
    if (violation_.empty()) violation_ = fmt::format("line {}: {}", number, why);
  }

  void read(std::size_t number, const std::string& line) {
    if (ended_) return fail(number, "something follows # EOF");
    if (line == "# EOF") {
      ended_ = true;
    } else if (line.starts_with('#')) {
      read_metadata(number, line);
    } else {
      read_sample(number, line);
    }
  }

  void read_metadata(std::size_t number, const std::string& line) {
    std::istringstream in(line);
    std::string hash, what, name, rest;
    in >> hash >> what >> name;
    std::getline(in, rest);
    if (hash != "#" || rest.size() < 2 || rest.front() != ' ') return fail(number, line);
    rest.erase(0, 1);
    if (what == "TYPE") {
      if (rest != "gauge") return fail(number, "the type is " + rest);
      if (!is_name(name)) return fail(number, "the name is " + name);
      if (!families_.insert(name).second) return fail(number, name + " comes twice");
      family_ = name;
      seen_ = {"TYPE"};
      return;
    }
    if (what != "UNIT" && what != "HELP") return fail(number, "there is no " + what);
    if (name != family_) return fail(number, name + " is none of " + family_);
    if (has_samples_.contains(name)) return fail(number, "it stands behind its samples");
    if (!seen_.insert(what).second) return fail(number, what + " comes twice");
    // An escape of one reader is an error to another.
    if (rest.find_first_of("\"\\") != std::string::npos) return fail(number, "a quote in " + rest);
    if (what == "UNIT" && !name.ends_with("_" + rest)) {
      return fail(number, name + " does not end with its unit " + rest);
    }
  }

  // name{label="value",label="value"} number
  void read_sample(std::size_t number, const std::string& line) {
    const std::size_t open = line.find('{');
    if (open == std::string::npos) return fail(number, "there are no labels");
    const std::string name = line.substr(0, open);
    if (name != family_) return fail(number, name + " is none of " + family_);
    has_samples_.insert(name);
    Sample sample;
    std::size_t at = open + 1;
    while (line[at - 1] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string::npos) return fail(number, "a label has no value");
      const std::string label = line.substr(at, equals - at);
      if (!is_name(label)) return fail(number, "a label is " + label);
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\') ++at;
        value += line[at] == 'n' && line[at - 1] == '\\' ? '\n' : line[at];
      }
      if (!sample.labels.emplace(label, value).second) return fail(number, label + " comes twice");
      ++at;
      if (at >= line.size() || (line[at] != ',' && line[at] != '}')) return fail(number, line);
      ++at;
    }
    if (line[at] != ' ') return fail(number, "no blank before the number");
    const std::string text = line.substr(at + 1);
    char* end = nullptr;
    sample.value = std::strtod(text.c_str(), &end);
    const bool is_word = text == "NaN" || text == "+Inf" || text == "-Inf";
    const bool is_number = text.find_first_not_of("0123456789+-.e") == std::string::npos;
    if (text.empty() || *end != '\0' || !(is_word || is_number)) return fail(number, text);
    for (auto [it, last] = samples_.equal_range(name); it != last; ++it) {
      if (it->second.labels == sample.labels) return fail(number, "the sample comes twice");
    }
    samples_.emplace(name, std::move(sample));
  }

  static bool is_name(std::string_view text) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
    for (const char c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
    }
    return true;
  }

  std::string violation_;
  bool ended_ = false;
  std::string family_;
  std::set<std::string> seen_;
  std::set<std::string> families_;
  std::set<std::string> has_samples_;
  std::multimap<std::string, Sample> samples_;
};

}  // namespace rubato::test
