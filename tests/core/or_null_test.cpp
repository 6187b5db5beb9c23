#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/core/text/json.hpp"

namespace rubato {
namespace {

TEST(OrNull, IsNullWithoutAValueOnly) {
  EXPECT_EQ(or_null(std::optional<double>(0.5)).dump(), "0.5");
  EXPECT_EQ(or_null(std::optional<std::int64_t>(0)).dump(), "0");
  EXPECT_EQ(or_null(std::optional<double>()).dump(), "null");
}

TEST(OrNull, TakesAnEmptyTextForNone) {
  EXPECT_EQ(or_null(std::string("ring")).dump(), R"("ring")");
  EXPECT_EQ(or_null(std::string()).dump(), "null");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  const nlohmann::json named{{"file", "x\xff.csv"}};
  EXPECT_EQ(json_text(named), "{\"file\":\"x\xef\xbf\xbd.csv\"}");
  EXPECT_EQ(json_text(named, 1), "{\n \"file\": \"x\xef\xbf\xbd.csv\"\n}");
}

}  // namespace
}  // namespace rubato
