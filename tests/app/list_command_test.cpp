#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run_configuration.hpp>

#include "app/run_program.hpp"
#include "runs/report/report_schemas.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;

std::string listed(const test::Words& arguments) {
  const ProgramResult result = test::rubato("list" + arguments);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  return result.out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(List, NamesAllFamilies) {
  const std::string out = listed({});
  for (const Family& family : families()) {
    EXPECT_THAT(out, ContainsRegex("\n +" + family.name + " +" + family.option + " +"));
    for (const Strategy& strategy : family.strategies) EXPECT_THAT(out, HasSubstr(strategy.name));
  }
}

TEST(List, ExplainsAFamily) {
  const std::string out = listed("schedules");
  EXPECT_THAT(out,
              AllOf(HasSubstr("schedules (--schedule): "), HasSubstr("\nstep\n    gamma^"),
                    ContainsRegex("\n    every +required +a number greater than 0, such as 30"),
                    ContainsRegex("\n    gamma +0.1 +a number greater than 0\n"),
                    ContainsRegex("\n    mode +as --watch +min, max\n")));
  EXPECT_EQ(listed("schedule"), out) << "in the singular, too";
  EXPECT_EQ(listed("rule schedule"), listed("rules") + "\n" + out);
  EXPECT_THAT(listed("data"), AllOf(HasSubstr("\nmnist:DIR\n"),
                                    ContainsRegex("\n    label +the last one +the name of"),
                                    HasSubstr("\nGiven as NAME,ARGUMENT=VALUE,ARGUMENT=VALUE.")));
}

TEST(List, FitsIntoEightyColumns) {
  std::string all;
  for (const Family& family : families()) all += family.name + " ";
  for (const std::string& arguments : {std::string(), all, std::string("records")}) {
    for (const std::string& line : lines_of(listed(arguments))) {
      EXPECT_LE(line.size(), 80U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(List, IsJsonWithAllThereIsToKnow) {
  const auto all = nlohmann::json::parse(listed("--json"))["families"];
  ASSERT_EQ(all.size(), families().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Family& family = families()[i];
    EXPECT_EQ(all[i]["name"], family.name);
    EXPECT_EQ(all[i]["option"], family.option);
    ASSERT_EQ(all[i]["strategies"].size(), family.strategies.size());
    for (std::size_t j = 0; j < family.strategies.size(); ++j) {
      const Strategy& strategy = family.strategies[j];
      const auto& json = all[i]["strategies"][j];
      EXPECT_EQ(json["name"], strategy.name);
      EXPECT_EQ(json["help"], strategy.help);
      ASSERT_EQ(json["arguments"].size(), strategy.arguments.size());
      for (std::size_t k = 0; k < strategy.arguments.size(); ++k) {
        EXPECT_EQ(json["arguments"][k]["name"], strategy.arguments[k].name);
      }
    }
  }
  const auto rules = nlohmann::json::parse(listed("--json rule"))["families"];
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0]["strategies"][5]["arguments"][1],
            nlohmann::json::parse(R"({"name": "averaging", "kind": "choice", "default": "debiased",
                "unset": null, "required": false, "example": null,
                "accepted": "debiased, mean-first", "choices": ["debiased", "mean-first"]})"));
}

TEST(List, ExplainsTheRecords) {
  const std::string out = listed("records");
  for (const RecordInfo& record : record_infos()) {
    EXPECT_THAT(out, HasSubstr("\n" + record.name + "\n    "));
    for (const ColumnInfo& column : record.columns) {
      EXPECT_THAT(out, HasSubstr("\n    " + json_path(column) + " "));
    }
  }
  EXPECT_EQ(listed("records --json"), record_json_schema());
  EXPECT_EQ(test::rubato("list records rules").err,
            "rubato list: records are listed by themselves; accepted: without the name of a "
            "family\n");
}

TEST(List, SuggestsTheNearestFamily) {
  const ProgramResult result = test::rubato("list rlues");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(
      result.err,
      "rubato list: unknown family 'rlues'; did you mean 'rules'? accepted: models, losses, data, "
      "samplers, traces, generators, policies, batch-policies, markets, rules, schedules, "
      "optimizers, "
      "transforms, initializers, augmentations, metrics, precisions, "
      "reducers, algorithms\n");
  EXPECT_THAT(test::rubato("list --jsn").err, HasSubstr("did you mean '--json'?"));
  EXPECT_THAT(listed("--help"), HasSubstr("Usage: rubato list [FAMILY...] [OPTIONS]\n"));
}

}  // namespace
}  // namespace rubato
