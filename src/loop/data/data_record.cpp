// A run's record of its data is one JSON object, which to_json() writes and parse_data_record()
// reads. Reading checks more than types: shapes, statistics, vocabulary, class names and the table
// have to fit each other, and a pair of tokens may only refer to tokens before it, so that the
// users of a record need no checks of their own. Keys that earlier versions did not write are
// optional. Every failure, an exception of the JSON library included, reaches the caller as one
// Error that names the file.

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "data_files.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<Choice<InputKind>, 3> kInputKinds{
    {{InputKind::pixels, "pixels"}, {InputKind::reals, "reals"}, {InputKind::tokens, "tokens"}}};

// Parses a choice by its name; throws for a name that is not one of these.
template <class Enum, std::size_t N>
Enum choice_in(const Json& json, const std::array<Choice<Enum>, N>& choices) {
  return parse_choice("name", json.get<std::string>(), choices);
}

double finite(const Json& json) {
  const auto value = json.get<double>();
  if (!std::isfinite(value)) throw Error("it has a number that is not finite");
  return value;
}

std::int64_t count_in(const Json& json) {
  const auto count = json.get<std::int64_t>();
  if (count < 0) throw Error("it has a negative count");
  return count;
}

Json json_of(const TableEncoding& table) {
  Json columns = Json::array();
  for (const TableColumn& column : table.columns) {
    Json of{{"name", column.name}, {"type", choice_name(kColumnKinds, column.kind)}};
    if (column.kind == ColumnKind::categories) of["categories"] = column.categories;
    columns.push_back(std::move(of));
  }
  Json json{{"source", table.source},
            {"label", table.columns[table.label].name},
            {"label_by_value", table.label_by_value},
            {"missing", choice_name(kMissingValues, table.missing)},
            {"decimal", choice_name(kDecimals, table.format.decimal)},
            {"has_header", table.format.has_header},
            {"ignored", table.ignored},
            {"rows", table.rows},
            {"columns", std::move(columns)}};
  // A table without these is described as earlier versions did it.
  if (!table.format.separator.empty()) json["separator"] = table.format.separator;
  if (!table.format.comment.empty()) json["comment"] = table.format.comment;
  if (!table.missing_words.empty()) json["missing_words"] = table.missing_words;
  return json;
}

TableEncoding table_in(const Json& json) {
  TableEncoding table{.source = json.at("source"),
                      .label_by_value = json.at("label_by_value"),
                      .missing = choice_in(json.at("missing"), kMissingValues),
                      .rows = count_in(json.at("rows"))};
  // Runs of earlier versions have none of these.
  if (json.contains("decimal")) {
    table.format.decimal = choice_in(json.at("decimal"), kDecimals);
    table.format.has_header = json.at("has_header");
    json.at("ignored").get_to(table.ignored);
  }
  table.format.separator = json.value("separator", std::string());
  table.format.comment = json.value("comment", std::string());
  table.missing_words = json.value("missing_words", std::vector<std::string>());
  const auto label = json.at("label").get<std::string>();
  bool has_label = false;
  for (const Json& of : json.at("columns")) {
    TableColumn column{.name = of.at("name"), .kind = choice_in(of.at("type"), kColumnKinds)};
    if (column.kind == ColumnKind::categories) of.at("categories").get_to(column.categories);
    if (column.name == label) {
      table.label = table.columns.size();
      has_label = true;
    }
    table.columns.push_back(std::move(column));
  }
  if (!has_label) throw Error("it has no column of labels");
  return table;
}

void put(const TextEncoding& text, Json& json) {
  if (text.tokens == TextTokens::characters) {
    json["alphabet"] = text.alphabet;
    return;
  }
  json["tokens"] = choice_name(kTextTokens, text.tokens);
  if (text.tokens == TextTokens::pairs) json["pairs"] = text.pairs;
}

TextEncoding text_in(const Json& json) {
  TextEncoding text;
  if (json.contains("alphabet")) {
    json.at("alphabet").get_to(text.alphabet);
    return text;
  }
  text.tokens = choice_in(json.at("tokens"), kTextTokens);
  if (text.tokens != TextTokens::pairs) return text;
  json.at("pairs").get_to(text.pairs);
  // Sizes are bounded one by one, so that no sum is out of range.
  std::vector<std::int32_t> sizes(kByteTokens, 1);
  for (const TokenPair& pair : text.pairs) {
    std::int32_t size = 0;
    for (const std::int32_t token : pair) {
      if (token < 0 || token >= std::ssize(sizes)) {
        throw Error("it has a pair of tokens that do not precede it");
      }
      size += sizes[static_cast<std::size_t>(token)];
    }
    if (size > kMostWordBytes) throw Error("it has a pair that is larger than a word");
    sizes.push_back(size);
  }
  return text;
}

DataRecord record_in(const Json& json) {
  DataRecord record{.kind = json.at("kind"),
                    .inputs = choice_in(json.at("inputs"), kInputKinds),
                    .shape = json.at("shape"),
                    .target_shape = json.at("target_shape"),
                    .classes = count_in(json.at("classes")),
                    .vocabulary = count_in(json.at("vocabulary"))};
  std::uint64_t size = 0;
  std::uint64_t target_size = 0;
  if (!count_elements(record.shape, size) || !count_elements(record.target_shape, target_size)) {
    throw Error("it has an invalid shape");
  }
  for (const Json& of : json.at("channels")) {
    record.channels.push_back(
        {.mean = finite(of.at("mean")), .deviation = finite(of.at("deviation"))});
  }
  for (const Json& of : json.at("features")) {
    record.features.push_back({.mean = finite(of.at("mean")),
                               .deviation = finite(of.at("deviation")),
                               .missing = finite(of.at("missing"))});
  }
  const std::size_t channels =
      record.shape.size() == 3 ? static_cast<std::size_t>(record.shape.front()) : 1;
  const bool fits = record.channels.size() == (record.inputs == InputKind::pixels ? channels : 0) &&
                    (record.features.empty() || record.features.size() == size);
  if (!fits) throw Error("it has statistics of other samples");
  // A text in characters has nothing but the alphabet, as earlier versions wrote it.
  if (json.contains("alphabet") || json.contains("tokens")) {
    record.text = std::make_shared<const TextEncoding>(text_in(json));
    if (record.shape.size() != 1 || size == 0 ||
        std::ssize(token_bytes(*record.text)) != record.vocabulary) {
      throw Error("it has a text of other samples");
    }
  }
  if (json.contains("class_names")) {
    json.at("class_names").get_to(record.class_names);
    if (std::ssize(record.class_names) != record.classes)
      throw Error("it has names of other classes");
  }
  if (json.contains("table")) {
    record.table = std::make_shared<const TableEncoding>(table_in(json.at("table")));
    if (record.table->features() != static_cast<std::int64_t>(size) ||
        record.table->classes() != record.classes) {
      throw Error("it has a table of other samples");
    }
  }
  return record;
}

}  // namespace

DataRecord record_of(const DataSets& data, std::string_view kind) {
  return {.kind = std::string(kind),
          .inputs = data.inputs,
          .shape = data.train.inputs.shape(),
          .target_shape = data.train.targets.shape(),
          .classes = data.classes,
          .vocabulary = data.vocabulary,
          .channels = data.channels,
          .features = data.features,
          .text = data.text,
          .class_names = data.class_names,
          .table = data.table};
}

std::string to_json(const DataRecord& record) {
  Json json{{"kind", record.kind},       {"inputs", choice_name(kInputKinds, record.inputs)},
            {"shape", record.shape},     {"target_shape", record.target_shape},
            {"classes", record.classes}, {"vocabulary", record.vocabulary}};
  json["channels"] = Json::array();
  for (const PixelStatistics& of : record.channels) {
    json["channels"].push_back({{"mean", of.mean}, {"deviation", of.deviation}});
  }
  json["features"] = Json::array();
  for (const FeatureStatistics& of : record.features) {
    json["features"].push_back(
        {{"mean", of.mean}, {"deviation", of.deviation}, {"missing", of.missing}});
  }
  if (record.text) put(*record.text, json);
  if (!record.class_names.empty()) json["class_names"] = record.class_names;
  if (record.table) json["table"] = json_of(*record.table);
  return json_text(json, 1) + "\n";
}

DataRecord parse_data_record(std::string_view json, const std::string& source) {
  const auto fail = [&](const char* why) {
    throw_error("{}: is not a record of data: {}; accepted: one that a run wrote", source, why);
  };
  try {
    return record_in(Json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    fail(error.what());
  } catch (const Error& error) {
    fail(error.what());
  }
  return {};
}

}  // namespace rubato
