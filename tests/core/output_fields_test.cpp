#include "base/core/text/output_fields.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace rubato {
namespace {

enum class Colour { red, green };
struct ColourRow {
  Colour value;
  const char* name;
};
constexpr std::array<ColourRow, 2> kColours{{{Colour::red, "red"}, {Colour::green, "green"}}};

struct Thing {
  std::string name{};
  Colour colour = Colour::red;
  std::optional<std::int64_t> count{};
  std::optional<double> weight{};
  std::vector<Thing> parts{};
};

OutputFields<Thing> fields() {
  return {{"name", "its name", text_or_none(&Thing::name), OutputColumn{"name", Column::left}},
          {"colour", "its colour", &Thing::colour, form_of_choice(kColours)},
          {"count", "how many", &Thing::count, OutputColumn{"count"}},
          {"weight?", "how heavy", &Thing::weight},
          {"heavy", Column::left, [](const Thing&) { return "yes"; },
           [](const Thing& of) { return of.weight.has_value(); }}};
}

nlohmann::json schema_of(const char* text) {
  return nlohmann::json::parse(text);
}

TEST(OutputFields, AreKeysOfAnObjectInTheirOrder) {
  const JsonForm<Thing> form = form_of_object(fields());
  EXPECT_EQ(form.write({.name = "a", .count = 3, .weight = 0.5}).dump(),
            R"({"name":"a","colour":"red","count":3,"weight":0.5})");
  EXPECT_EQ(form.write({.colour = Colour::green}).dump(),
            R"({"name":null,"colour":"green","count":null})");
}

TEST(OutputFields, HaveAJsonSchema) {
  EXPECT_EQ(nlohmann::json(form_of_object(fields()).schema), schema_of(R"({
    "type": "object",
    "properties": {
      "name": {"type": ["string", "null"], "description": "its name"},
      "colour": {"type": "string", "enum": ["red", "green"], "description": "its colour"},
      "count": {"type": ["integer", "null"], "description": "how many"},
      "weight": {"type": "number", "description": "how heavy"}},
    "required": ["name", "colour", "count"],
    "additionalProperties": false})"));
}

TEST(OutputFields, HavePartsInListsAndByName) {
  const JsonForm<Thing> part =
      form_of_object<Thing>({{"colour", "its colour", &Thing::colour, form_of_choice(kColours)}});
  const JsonForm<Thing> whole =
      form_of_object<Thing>({{"parts", "all of them", &Thing::parts, part}});
  EXPECT_EQ(whole.write({.parts = {{}, {.colour = Colour::green}}}).dump(),
            R"({"parts":[{"colour":"red"},{"colour":"green"}]})");
  EXPECT_EQ(whole.write({}).dump(), R"({"parts":[]})");
  const JsonForm<ByName<double>> named = form_of<ByName<double>>();
  EXPECT_EQ(named.write({{"b", 1.5}, {"a", 2}}).dump(), R"({"b":1.5,"a":2.0})");
  EXPECT_EQ(named.write({}).dump(), "{}");
  EXPECT_EQ(nlohmann::json(named.schema),
            schema_of(R"({"type": "object", "additionalProperties": {"type": "number"}})"));
}

TEST(OutputFields, AreColumnsOfATableIfSomeRowHasThem) {
  const std::vector<Thing> light{{.name = "a", .count = 10}, {.name = "b\x1b"}};
  EXPECT_EQ(table_of<Thing>(fields(), light).text(),
            "name  count\n"
            "a        10\n"
            "b?        -\n");
  const std::vector<Thing> heavy{{.count = 1, .weight = 2}};
  EXPECT_EQ(table_of<Thing>(fields(), heavy).text(),
            "name  count  heavy\n"
            "-         1  yes\n");
}

}  // namespace
}  // namespace rubato
