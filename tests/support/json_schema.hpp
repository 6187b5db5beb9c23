#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace rubato::test {

/// As much of JSON Schema as rubato's schemas have.
class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json root) : root_(std::move(root)) {}

  /// What of `value` is not as the schema says; empty where it is valid.
  [[nodiscard]] std::string violation(const nlohmann::json& value) const {
    return violation(root_, value, "");
  }
  /// The properties that no value so far had, "/cells[]/rank".
  [[nodiscard]] std::set<std::string> unseen() const {
    std::set<std::string> all;
    collect(root_, "", all);
    for (const std::string& seen : seen_) all.erase(seen);
    return all;
  }

 private:
  using Json = nlohmann::json;

  [[nodiscard]] static bool is_a(const std::string& type, const Json& value) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == value.type_name();
  }

  static void collect(const Json& schema, const std::string& path, std::set<std::string>& all) {
    if (!schema.is_object()) return;
    if (schema.contains("oneOf")) {
      for (const Json& one : schema["oneOf"]) collect(one, path, all);
    }
    if (schema.contains("items")) collect(schema["items"], path + "[]", all);
    if (!schema.contains("properties")) return;
    for (const auto& [key, of] : schema["properties"].items()) {
      all.insert(path + "/" + key);
      collect(of, path + "/" + key, all);
    }
  }

  [[nodiscard]] std::string violation(const Json& schema, const Json& value,
                                      const std::string& path) const {
    if (schema == Json(false)) return path + " is unknown";
    for (const auto& [keyword, rule] : schema.items()) {
      std::string found = broken(keyword, rule, schema, value, path);
      if (!found.empty()) return found;
    }
    return "";
  }

  [[nodiscard]] std::string broken(const std::string& keyword, const Json& rule, const Json& schema,
                                   const Json& value, const std::string& path) const {
    static const std::set<std::string> annotations{"$schema", "$defs", "title",      "description",
                                                   "column",  "unit",  "tensorboard"};
    if (annotations.contains(keyword)) return "";
    if (keyword == "$ref") {
      return violation(root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), value,
                       path);
    }
    if (keyword == "oneOf") {
      std::vector<std::string> why;
      for (const Json& one : rule) why.push_back(violation(one, value, path));
      if (std::ranges::count(why, "") == 1) return "";
      return fmt::format("{} is valid for {} of them: {}", path, std::ranges::count(why, ""),
                         fmt::join(why, "; "));
    }
    if (keyword == "enum") {
      return std::ranges::find(rule, value) != rule.end() ? "" : path + " is not in " + rule.dump();
    }
    if (keyword == "const") return value == rule ? "" : path + " is not " + rule.dump();
    if (keyword == "type") {
      const Json types = rule.is_array() ? rule : Json::array({rule});
      const bool known =
          std::ranges::any_of(types, [&](const Json& type) { return is_a(type, value); });
      return known ? "" : fmt::format("{} is {}, not {}", path, value.dump(), rule.dump());
    }
    if (keyword == "items") {
      for (const Json& item : value) {
        if (std::string found = violation(rule, item, path + "[]"); !found.empty()) return found;
      }
      return "";
    }
    if (keyword == "required") {
      for (const Json& key : rule) {
        if (value.is_object() && !value.contains(key)) {
          return fmt::format("{} lacks {}", path, key.get<std::string>());
        }
      }
      return "";
    }
    if (keyword == "properties" || keyword == "additionalProperties") {
      if (!value.is_object()) return "";
      const Json known = schema.value("properties", Json::object());
      for (const auto& [key, member] : value.items()) {
        if (known.contains(key) != (keyword == "properties")) continue;
        const Json& of = known.contains(key) ? known[key] : rule;
        if (known.contains(key)) seen_.insert(path + "/" + key);
        if (std::string found = violation(of, member, path + "/" + key); !found.empty()) {
          return found;
        }
      }
      return "";
    }
    return "unknown keyword " + keyword;
  }

  Json root_;
  mutable std::set<std::string> seen_{};
};

}  // namespace rubato::test
