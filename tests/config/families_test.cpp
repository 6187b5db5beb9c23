// The families against the options that take their strategies: neither has what the other lacks.

#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/run_option.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

const RunOption& option_of(const Family& family) {
  return run_option(family.option.substr(2));
}

// What the option says to `text`.
std::string answer_of(const Family& family, const std::string& text) {
  return error_of([&] {
    RunConfiguration configuration;
    option_of(family).set(configuration, text);
  });
}

// The names behind "accepted: ".
std::set<std::string> accepted_in(const std::string& error) {
  constexpr std::string_view kAccepted = "accepted: ";
  const std::size_t begin = error.find(kAccepted);
  std::set<std::string> names;
  if (begin == std::string::npos) return names;
  std::string list = error.substr(begin + kAccepted.size());
  for (std::size_t comma = 0; (comma = list.find(", ")) != std::string::npos;) {
    names.insert(list.substr(0, comma));
    list.erase(0, comma + 2);
  }
  names.insert(list);
  return names;
}

// "step:every=30": what has to be given, but for one argument.
std::string text_of(const Strategy& strategy, const std::string& left_out = {},
                    const std::string& more = {}) {
  std::string text = strategy.name;
  const auto add = [&](const std::string& part) {
    // Behind a name such as "csv:FILE" arguments begin with a comma.
    text += (text.find_first_of(":=") == std::string::npos ? ":" : ",") + part;
  };
  for (const Argument& argument : strategy.arguments) {
    if (argument.example.empty() || argument.name == left_out) continue;
    add(argument.name + "=" + argument.example);
  }
  if (!more.empty()) add(more);
  return text;
}

void for_each_strategy(const std::function<void(const Family&, const Strategy&)>& check) {
  for (const Family& family : families()) {
    for (const Strategy& strategy : family.strategies) check(family, strategy);
  }
}

TEST(Families, HaveEveryNameThatTheirOptionsAccept) {
  std::set<std::string> options;
  for (const Family& family : families()) options.insert(family.option);
  for (const std::string& option : options) {
    std::set<std::string> names;
    const Family* one = nullptr;
    for (const Family& family : families()) {
      if (family.option != option) continue;
      one = &family;
      for (const Strategy& strategy : family.strategies) {
        EXPECT_TRUE(names.insert(strategy.name).second) << strategy.name << " is there twice";
      }
    }
    // What is not the built-in trace or a number names a file.
    if (option == "--trace") continue;
    EXPECT_EQ(accepted_in(answer_of(*one, "no-such-name")), names) << option;
  }
}

TEST(Families, AreAcceptedByTheirOptions) {
  for_each_strategy([](const Family& family, const Strategy& strategy) {
    EXPECT_EQ(answer_of(family, text_of(strategy)), "no error") << strategy.name;
    EXPECT_NE(strategy.help, "") << strategy.name;
  });
}

TEST(Families, HaveArgumentsThatAreAcceptedWithTheirDefaults) {
  int tried = 0;
  for_each_strategy([&](const Family& family, const Strategy& strategy) {
    for (const Argument& argument : strategy.arguments) {
      std::vector<std::string> values = argument.choices;
      for (const std::string& value : {argument.fallback, argument.example}) {
        if (!value.empty()) values.push_back(value);
      }
      for (const std::string& value : values) {
        const std::string text = text_of(strategy, argument.name, argument.name + "=" + value);
        EXPECT_EQ(answer_of(family, text), "no error") << text;
        ++tried;
      }
      EXPECT_EQ((argument.fallback.empty() ? 0 : 1) + (argument.unset.empty() ? 0 : 1) +
                    (argument.example.empty() ? 0 : 1),
                1)
          << strategy.name << ": " << argument.name;
      // Any text is accepted.
      if (argument.kind == ArgumentKind::text) continue;
      const std::string wrong = text_of(strategy, argument.name, argument.name + "=!");
      EXPECT_THAT(answer_of(family, wrong),
                  EndsWith(argument.accepted.substr(0, argument.accepted.find(", or several"))))
          << wrong;
    }
  });
  EXPECT_GE(tried, 80);
}

TEST(Families, HaveEveryArgumentThatTheirOptionsAccept) {
  for_each_strategy([](const Family& family, const Strategy& strategy) {
    // What is the user's to fill in takes none, unless it is data: all is a part of a path.
    const bool names_a_file = family.name != "data" && strategy.name.ends_with(":FILE");
    if (family.name == "traces") {
      EXPECT_EQ(strategy.arguments.empty(), strategy.name != "FILE");
      return;
    }
    if (names_a_file || (family.name == "data" && strategy.arguments.empty())) {
      EXPECT_TRUE(strategy.arguments.empty());
      return;
    }
    const std::string error = answer_of(family, text_of(strategy, {}, "no-such-argument=1"));
    if (strategy.arguments.empty()) {
      EXPECT_EQ(error, strategy.name + " takes no arguments, but has 'no-such-argument'");
      return;
    }
    std::set<std::string> names;
    for (const Argument& argument : strategy.arguments) names.insert(argument.name);
    EXPECT_EQ(accepted_in(error), names) << strategy.name;
  });
}

// The default as text is the default.
TEST(Families, HaveDefaultsThatChangeNothing) {
  int tried = 0;
  const auto check = [&](std::string_view name, const auto& parse) {
    for (const Strategy& strategy : family(name).strategies) {
      const auto usual = parse(text_of(strategy));
      for (const Argument& argument : strategy.arguments) {
        if (argument.fallback.empty()) continue;
        const std::string text =
            text_of(strategy, argument.name, argument.name + "=" + argument.fallback);
        EXPECT_TRUE(parse(text) == usual) << text;
        ++tried;
      }
    }
  };
  check("optimizers", [](const std::string& text) { return parse_optimizer(text, {}); });
  check("initializers", [](const std::string& text) { return parse_initializer(text); });
  check("precisions", [](const std::string& text) { return parse_precision(text); });
  EXPECT_GE(tried, 25);
}

TEST(Families, AreCalledByTheirNamesInSingularAndPlural) {
  for (const Family& one : families()) EXPECT_EQ(&family(one.name), &one);
  EXPECT_EQ(&family("rule"), &family("rules"));
  EXPECT_THAT(error_of([] { return family("optimzer"); }),
              StartsWith("unknown family 'optimzer'; did you mean 'optimizers'?"));
}

}  // namespace
}  // namespace rubato
