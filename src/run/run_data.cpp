#include "run/run_data.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>

#include "config/allowed.hpp"
#include "config/data_source.hpp"
#include "core/check.hpp"
#include "data/data_files.hpp"
#include "data/data_record.hpp"
#include "data/digits.hpp"
#include "data/table_encoding.hpp"

namespace rubato {

namespace {

DataSets read_digits(const DataSource& /*none*/) {
  constexpr std::int64_t kDigits = 10;
  TrainTestImages images = builtin_digits();
  return {.train = sample_set_of(std::move(images.train)),
          .test = sample_set_of(std::move(images.test)),
          .inputs = InputKind::pixels,
          .classes = kDigits,
          .noun = "images"};
}

// How the data sets of data_sources() are read, by kind.
struct DataReader {
  std::string_view kind;
  DataSets (*read)(const DataSource& source);
};

constexpr std::array<DataReader, 6> kDataReaders{
    {{"digits", read_digits},
     {"mnist", [](const DataSource& source) { return read_idx_samples(source.path); }},
     {"cifar10", [](const DataSource& source) { return read_cifar10(source.path); }},
     {"tensors",
      [](const DataSource& source) {
        DataSets data = read_tensor_samples(source.path);
        if (source.csv.standardise) data.standardised.emplace();
        return data;
      }},
     {"csv", [](const DataSource& source) { return read_csv_samples(source.path, source.csv); }},
     {"text",
      [](const DataSource& source) { return read_text_samples(source.path, source.length); }}}};

std::string counted(std::int64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

// "of 1 x 28 x 28 in 10 classes"; of a table "of 7 features (4 columns of numbers, 1 of categories)
// in 3 classes".
std::string what_they_are(const DataSets& data) {
  const SampleRows& inputs = data.train.inputs;
  std::string text = "of ";
  if (data.inputs == InputKind::tokens) {
    text += counted(inputs.elements(), "token", "tokens");
    if (data.vocabulary > 0) text += fmt::format(" from {}", data.vocabulary);
  } else if (inputs.shape().size() <= 1) {
    text += counted(inputs.elements(), "feature", "features");
  } else {
    text += fmt::to_string(fmt::join(inputs.shape(), " x "));
  }
  if (data.table) {
    const std::int64_t numbers = data.table->columns_of(ColumnKind::numbers);
    text += fmt::format(" ({} of numbers, {} of categories)", counted(numbers, "column", "columns"),
                        data.table->columns_of(ColumnKind::categories));
  }
  if (data.classes > 0) return text + " in " + counted(data.classes, "class", "classes");
  return fmt::format("{} with {}", text,
                     counted(data.train.targets.elements(), "real target", "real targets"));
}

KnownData known(const DataSets& data) {
  const std::vector<std::int64_t>& targets = data.train.targets.shape();
  return {.has_test = data.test.has_value(),
          .classes = data.classes,
          .dimensions = data.train.inputs.shape().size(),
          .targets = data.train.targets.elements(),
          .has_one_target = data.classes > 0 ? targets.empty() : targets.size() <= 1,
          .has_tokens = data.inputs == InputKind::tokens,
          .vocabulary = data.vocabulary,
          .description = what_they_are(data)};
}

}  // namespace

DataSets read_data(const DataSource& source) {
  if (source.kind == kOwn) {
    throw Error(
        "--data own: the data are in the program that trained on them; accepted: that program, or "
        "the name of a data set (rubato list data)");
  }
  const auto* const found = std::ranges::find(kDataReaders, source.kind, &DataReader::kind);
  RUBATO_CHECK(found != kDataReaders.end(), "a data set that the configuration has let pass");
  return found->read(source);
}

DataSets load_data(const RunConfiguration& configuration) {
  return prepared(configuration, read_data(*configuration.data));
}

DataSets prepared(const RunConfiguration& configuration, DataSets data) {
  if (const auto& held = configuration.validation) {
    try {
      hold_out(data, held->share, held->seed);
    } catch (const Error& error) {
      throw Error(fmt::format("--validation: {}", error.what()));
    }
  }
  try {
    normalise(data);
  } catch (const Error& error) {
    throw Error(fmt::format("--data: {}", error.what()));
  }
  require_data(configuration, known(data));
  return data;
}

std::string data_record(const RunConfiguration& configuration, const DataSets& data) {
  return to_json(record_of(data, configuration.data->kind));
}

std::vector<std::string> class_names(const DataSets& data) {
  if (!data.table) return {};
  return data.table->columns[data.table->label].categories;
}

std::string describe(const RunConfiguration& configuration, const DataSets& data) {
  const auto name = [](const std::string& text, std::string_view what) {
    return text == kOwn ? fmt::format("{} {}", text, what) : text;
  };
  std::string sets = fmt::format("{} training", data.train.size());
  if (data.test) {
    sets += fmt::format(" and {} {}", data.test->size(),
                        configuration.validation ? "validation" : "test");
  }
  return fmt::format("{} on {}: {} {} {}{}", name(configuration.model.text(), "model"),
                     name(configuration.data.text(), "data"), sets, data.noun, what_they_are(data),
                     data.left_out == 0 ? ""
                                        : fmt::format("; {} left out for want of a value",
                                                      counted(data.left_out, "row", "rows")));
}

DataShape shape_of(const DataSets& data) {
  const std::vector<std::int64_t>& shape = data.train.inputs.shape();
  DataShape found{.outputs = data.classes > 0 ? data.classes : data.train.targets.elements(),
                  .vocabulary = data.vocabulary};
  found.width = shape.empty() ? 1 : shape.back();
  found.height = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  found.channels = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) found.channels *= shape[i];
  return found;
}

}  // namespace rubato
