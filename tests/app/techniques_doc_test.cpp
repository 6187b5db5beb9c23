#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/recipe/initializer_options.hpp>
#include <rubato/recipe/optimizer_options.hpp>
#include <rubato/recipe/precision.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>

#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::HasSubstr;

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

TEST_F(TechniquesDoc, NamesEverythingThereIs) {
  const auto expect_name = [&](std::string_view name) {
    EXPECT_THAT(text_, HasSubstr("`" + std::string(name) + "`"));
  };
  for (const auto name : rule_names()) expect_name(name);
  for (const auto name : lr_schedule_names()) expect_name(name);
  for (const auto& choice : kOptimizers) expect_name(choice.name);
  for (const auto& choice : kPrecisions) expect_name(choice.name);
  for (const auto& choice : kInitializers) expect_name(choice.name);
}

TEST_F(TechniquesDoc, HasExamplesThatAreAccepted) {
  int examples = 0;
  for (const std::string& text : code()) {
    // "warmup:length=5+cosine:total=35,after=5", but not "NAME:KEY=VALUE" or code.
    if (!std::regex_match(text, std::regex("[a-z][a-z-]*:[a-z-]+=.*"))) continue;
    ++examples;
    EXPECT_TRUE(error_of([&] { static_cast<void>(make_rule(text)); }) == "no error" ||
                error_of([&] { static_cast<void>(make_lr_schedule(text)); }) == "no error" ||
                error_of([&] { static_cast<void>(parse_optimizer(text, {})); }) == "no error" ||
                error_of([&] { static_cast<void>(parse_precision(text)); }) == "no error" ||
                error_of([&] { static_cast<void>(parse_initializer(text)); }) == "no error")
        << text;
  }
  EXPECT_GE(examples, 1);
}

// Every `key=default` in a table row is what that name takes.
TEST_F(TechniquesDoc, HasArgumentsThatAreAccepted) {
  const std::regex row(R"(\n\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \|([^\n]*))");
  int arguments = 0;
  for (std::sregex_iterator it(text_.begin(), text_.end(), row), end; it != end; ++it) {
    const std::string names = (*it)[1];
    const std::string rest = (*it)[2];
    const std::regex name("`([a-z0-9-]+)`");
    const std::regex argument("`([a-z0-9-]+=[^`]+)`");
    for (std::sregex_iterator n(names.begin(), names.end(), name); n != end; ++n) {
      for (std::sregex_iterator a(rest.begin(), rest.end(), argument); a != end; ++a) {
        const std::string given = std::regex_replace((*a)[1].str(), std::regex(R"(\\\|.*)"), "");
        const std::string spec = (*n)[1].str() + ":" + given;
        ++arguments;
        std::string errors;
        for (const auto& error : {error_of([&] { static_cast<void>(make_rule(spec)); }),
                                  error_of([&] { static_cast<void>(make_lr_schedule(spec)); }),
                                  error_of([&] { static_cast<void>(parse_optimizer(spec, {})); }),
                                  error_of([&] { static_cast<void>(parse_precision(spec)); }),
                                  error_of([&] { static_cast<void>(parse_initializer(spec)); })}) {
          // What else it needs is not in the row's one argument.
          if (error == "no error" || error.find(" needs a '") != std::string::npos) errors.clear();
          if (error == "no error" || error.find(" needs a '") != std::string::npos) break;
          errors += error + "\n";
        }
        EXPECT_EQ(errors, "") << spec;
      }
    }
  }
  EXPECT_GE(arguments, 25);
}

}  // namespace
}  // namespace rubato
