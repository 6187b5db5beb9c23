#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "runs/config/run_option.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::error_of;

// docs/techniques.md
class TechniquesDoc : public testing::Test {
 protected:
  // What stands between backticks.
  std::vector<std::string> code() const {
    const std::regex quoted("`([^`]+)`");
    std::vector<std::string> found;
    for (std::sregex_iterator it(text_.begin(), text_.end(), quoted), end; it != end; ++it) {
      found.push_back((*it)[1]);
    }
    return found;
  }

  std::string text_ = test::read_file(RUBATO_TECHNIQUES_MD);
};

// The families that the document is about.
std::vector<Family> described() {
  std::vector<Family> all;
  for (const std::string_view name :
       {"rules", "schedules", "optimizers", "precisions", "initializers"}) {
    all.push_back(family(name));
  }
  return all;
}

// Whether an option of one of these families takes it.
bool is_accepted(const std::string& text) {
  const std::vector<Family> all = described();
  return std::any_of(all.begin(), all.end(), [&](const Family& family) {
    return error_of([&] {
             RunConfiguration configuration;
             run_option(family.option.substr(2)).set(configuration, text);
           }) == "no error";
  });
}

// Whether a strategy of that name has that argument.
bool takes(const std::string& name, const std::string& argument) {
  for (const Family& family : described()) {
    for (const Strategy& strategy : family.strategies) {
      if (strategy.name != name) continue;
      for (const Argument& one : strategy.arguments) {
        if (one.name == argument) return true;
      }
    }
  }
  return false;
}

// "\| `a`, `b` \|", where `b` is asked for, and what follows in that line.
std::string rest_of_row(const std::string& document, const std::string& heading,
                        const std::string& name) {
  const std::string section =
      document.substr(std::min(document.find("(`" + heading + "`)"), document.size()));
  std::smatch row;
  const std::regex pattern("\n\\| (?:`[a-z0-9-]+`, )*`" + name +
                           "`(?:, `[a-z0-9-]+`)* \\|([^\n]*)");
  return std::regex_search(section, row, pattern) ? row[1].str() : std::string();
}

// Every name has a row with all of its arguments, and `key=default` is the default.
TEST_F(TechniquesDoc, HasEveryNameWithItsArguments) {
  for (const Family& family : described()) {
    for (const Strategy& strategy : family.strategies) {
      const std::string row = rest_of_row(text_, family.option, strategy.name);
      EXPECT_NE(row, "") << family.name << ": " << strategy.name;
      for (const Argument& argument : strategy.arguments) {
        // Of nearly all; said in the text.
        if (argument.name == "ramp" || argument.name == "after") continue;
        const bool has_default = !argument.fallback.empty();
        const std::regex code("`" + argument.name +
                              (has_default ? "=([^`\\\\]+)[^`]*`" : "(?:=[^`]*)?`"));
        std::smatch value;
        ASSERT_TRUE(std::regex_search(row, value, code))
            << strategy.name << ": " << argument.name << " is not in: " << row;
        if (!has_default || value[1].str() == argument.fallback) continue;
        EXPECT_EQ(std::stod(value[1].str()), std::stod(argument.fallback))
            << strategy.name << ": " << argument.name;
      }
    }
  }
}

TEST_F(TechniquesDoc, HasExamplesThatAreAccepted) {
  int examples = 0;
  for (const std::string& text : code()) {
    // "warmup:length=5+cosine:total=35,after=5", but not "NAME:KEY=VALUE" or code.
    if (!std::regex_match(text, std::regex("[a-z][a-z-]*:[a-z-]+=.*"))) continue;
    ++examples;
    EXPECT_TRUE(is_accepted(text)) << text;
  }
  EXPECT_GE(examples, 1);
}

// Every `key=value` in a row is what the names of that row take.
TEST_F(TechniquesDoc, HasArgumentsThatThereAre) {
  const std::regex row(R"(\n\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \|([^\n]*))");
  const std::regex name("`([a-z0-9-]+)`");
  const std::regex argument("`([a-z0-9-]+)=[^`]+`");
  const std::sregex_iterator end;
  int arguments = 0;
  for (std::sregex_iterator it(text_.begin(), text_.end(), row); it != end; ++it) {
    const std::string names = (*it)[1];
    const std::string rest = (*it)[2];
    for (std::sregex_iterator n(names.begin(), names.end(), name); n != end; ++n) {
      for (std::sregex_iterator a(rest.begin(), rest.end(), argument); a != end; ++a) {
        ++arguments;
        EXPECT_TRUE(takes((*n)[1].str(), (*a)[1].str())) << (*a).str() << " of " << (*n).str();
      }
    }
  }
  EXPECT_GE(arguments, 25);
}

}  // namespace
}  // namespace rubato
