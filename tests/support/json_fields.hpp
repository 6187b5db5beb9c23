#pragma once

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace rubato::test {

/// Expects each value of `expected`, a text of JSON, where it is in it; others may be there, too.
inline void expect_fields(const nlohmann::json& record, const std::string& expected) {
  const nlohmann::json fields = nlohmann::json::parse(expected).flatten();
  for (const auto& [path, value] : fields.items()) {
    const nlohmann::json::json_pointer at(path);
    ASSERT_TRUE(record.contains(at)) << path << " of " << record;
    EXPECT_EQ(record.at(at), value) << path;
  }
}

}  // namespace rubato::test
