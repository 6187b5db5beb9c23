// Data are read for one of two purposes. For training, a reader of their kind reads them, and
// prepared() holds out samples, normalises by the rest and compares the result with the options, in
// this order. For a model that has been trained, load_recorded_data() reads other data by the
// record in the folder of its run, so that categories, vocabulary and normalisation are those of
// training. A data set of the user's own is checked and converted to the same DataSets.

#include "run_data.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/images/digits.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/loss_choice.hpp"

namespace rubato {

namespace {

constexpr std::string_view kDigits = "digits";

DataSets read_digits(int threads) {
  constexpr std::int64_t kClasses = 10;
  TrainTestImages images = builtin_digits(threads);
  return {.train = sample_set_of(std::move(images.train)),
          .test = sample_set_of(std::move(images.test)),
          .inputs = InputKind::pixels,
          .classes = kClasses,
          .noun = "images"};
}

// Reads the data sets of data_sources() that are in files, by kind.
struct DataReader {
  std::string_view kind;
  DataSets (*read)(const DataSource& source);
};

constexpr std::array<DataReader, 7> kDataReaders{
    {{"mnist", [](const DataSource& source) { return read_idx_samples(source.path); }},
     {"cifar10", [](const DataSource& source) { return read_cifar10(source.path); }},
     {"tensors",
      [](const DataSource& source) {
        DataSets data = read_tensor_samples(source.path, source.tensors);
        if (source.csv.standardise) data.standardised.emplace();
        return data;
      }},
     {"images", [](const DataSource& source) { return read_image_folder(source.path); }},
     {"csv", [](const DataSource& source) { return read_csv_samples(source.path, source.csv); }},
     {"text", [](const DataSource& source) { return read_text_samples(source.path, source.text); }},
     {"sentences", [](const DataSource& source) {
        return make_sentence_samples(source.sentences, source.text);
      }}}};

template <class T>
SampleRows rows_of(std::vector<T> numbers, ElementType type, std::vector<std::int64_t> shape) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(numbers));
  return SampleRows(NumberArray{
      .type = type,
      .shape = std::move(shape),
      .bytes = {reinterpret_cast<const char*>(owner->data()), owner->size() * sizeof(T)},
      .owner = owner});
}

// Converts samples of the user's own; `name` is that of the data.
SampleSet sample_set_of(OwnData::Samples own, const OwnData& data, std::string_view name) {
  const auto fail = [&](std::string_view wrong) { throw_error("--data {}: {}", name, wrong); };
  const auto numbers = std::accumulate(data.shape.begin(), data.shape.end(), std::int64_t{1},
                                       [](std::int64_t a, std::int64_t b) { return a * b; });
  const auto inputs = std::ssize(own.inputs);
  if (numbers < 1 || inputs == 0 || inputs % numbers != 0) {
    fail(
        fmt::format("{} numbers are not samples of shape [{}]; accepted: at least one whole sample",
                    inputs, fmt::join(data.shape, ", ")));
  }
  const std::int64_t count = inputs / numbers;
  const auto targets = data.classes > 0 ? std::ssize(own.labels) : std::ssize(own.targets);
  const bool one_each = data.classes == 0 || targets == count;
  if (targets == 0 || targets % count != 0 || !one_each) {
    fail(fmt::format("{} {} for {} samples; accepted: {} each", targets,
                     data.classes > 0 ? "labels" : "targets", count,
                     data.classes > 0 ? "one for" : "as many for"));
  }
  for (const std::int64_t label : own.labels) {
    if (label < 0 || label >= data.classes) {
      fail(fmt::format("a sample is of class {}; accepted: 0 to {}", label, data.classes - 1));
    }
  }
  std::vector<std::int64_t> shape{count};
  shape.insert(shape.end(), data.shape.begin(), data.shape.end());
  SampleSet set{
      .inputs = rows_of(std::move(own.inputs), ElementType::f32, std::move(shape)),
      .targets = data.classes > 0
                     ? rows_of(std::move(own.labels), ElementType::i64, {count})
                     : rows_of(std::move(own.targets), ElementType::f32, {count, targets / count})};
  require_finite(set.inputs, fmt::format("--data {}: the inputs", name));
  if (data.classes == 0) require_finite(set.targets, fmt::format("--data {}: the targets", name));
  return set;
}

DataSets sets_of(OwnData own, std::string_view name) {
  DataSets data{.train = sample_set_of(std::exchange(own.train, {}), own, name),
                .classes = own.classes,
                .in_memory = true};
  if (own.test) data.test = sample_set_of(*std::exchange(own.test, {}), own, name);
  return data;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

// Describes samples: "of 1 x 28 x 28 in 10 classes", or for a table "of 7 features (4 columns of
// numbers, 1 of categories) in 3 classes".
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
  if (data.probabilities) {
    return fmt::format("{} with probabilities of {} classes", text, data.train.targets.elements());
  }
  return fmt::format("{} with {}", text,
                     counted(data.train.targets.elements(), "real target", "real targets"));
}

}  // namespace

KnownData known_data(const DataSets& data) {
  const std::vector<std::int64_t>& targets = data.train.targets.shape();
  return {.has_test = data.test.has_value(),
          .classes = data.classes,
          .probabilities = data.probabilities,
          .dimensions = data.train.inputs.shape().size(),
          .targets = data.train.targets.elements(),
          .has_one_target = data.classes > 0 ? targets.empty() : targets.size() <= 1,
          .has_tokens = data.inputs == InputKind::tokens,
          .vocabulary = data.vocabulary,
          .description = what_they_are(data)};
}

IgnoredTargets ignored_targets(const RunConfiguration& configuration) {
  return {.one = configuration.loss->ignore, .negative = configuration.loss->script.has_value()};
}

DataSets read_data(const RunConfiguration& configuration) {
  if (configuration.data.text() == kOwn) {
    throw Error(
        "--data own: the data are in the program that trained on them; accepted: that program, or "
        "the name of a data set (rubato list data)");
  }
  const auto& own = configuration.extensions.data;
  DataSource source = *configuration.data;
  source.tensors.ignored = ignored_targets(configuration);
  if (const auto& weights = configuration.sampler->weights) {
    source.csv.weights = source.tensors.weights = weights->column;
  }
  if (own.find(source.kind) != nullptr) {
    return sets_of(own.make(configuration.data.text())->load(), configuration.data.text());
  }
  if (source.kind == kDigits) return read_digits(static_cast<int>(configuration.threads));
  const auto* const found = std::ranges::find(kDataReaders, source.kind, &DataReader::kind);
  RUBATO_CHECK(found != kDataReaders.end(), "a data set that the configuration accepts");
  return found->read(source);
}

namespace {

// Weighs each sample by the inverse of the number of samples of its class.
std::vector<double> balanced_weights(const SampleSet& train, std::int64_t classes,
                                     const IgnoredTargets& ignored) {
  if (classes == 0 || !train.targets.shape().empty()) {
    throw Error("the samples have no classes, one each; accepted: data of classes");
  }
  std::vector<std::int64_t> of_samples(static_cast<std::size_t>(train.size()));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  const auto counts_in_loss = [&](std::int64_t target) {
    return target >= 0 && target < classes && !ignored.contains(target);
  };
  for (std::size_t i = 0; i < of_samples.size(); ++i) {
    read_numbers(train.targets.type(), train.target(static_cast<std::int64_t>(i)), &of_samples[i]);
    if (counts_in_loss(of_samples[i])) ++counts[static_cast<std::size_t>(of_samples[i])];
  }
  return vector_of(of_samples, [&](std::int64_t target) {
    return counts_in_loss(target)
               ? 1 / static_cast<double>(counts[static_cast<std::size_t>(target)])
               : 0;
  });
}

// The weights of the training samples of all rows.
std::vector<double> row_weights(const SampleSet& train, const std::vector<double>& rows) {
  if (std::ssize(rows) != train.inputs.count()) {
    throw_error("{} weights for {} training samples; accepted: one for each", rows.size(),
                train.inputs.count());
  }
  // An error says the number of a row, also if some are held out.
  static_cast<void>(weighted(rows));
  if (!train.chosen) return rows;
  return vector_of(*train.chosen,
                   [&](std::int64_t row) { return rows[static_cast<std::size_t>(row)]; });
}

std::vector<double> weights_of(const SampleWeights& asked, const DataSets& data,
                               const IgnoredTargets& ignored) {
  if (asked.rows) return row_weights(data.train, *asked.rows);
  if (asked.column.empty()) return balanced_weights(data.train, data.classes, ignored);
  if (data.train.weights) return row_weights(data.train, *data.train.weights);
  throw Error(
      "the data have no columns; accepted: a column of csv:FILE, an array of tensors:FILE, or in "
      "Python sampler=WEIGHTS");
}

}  // namespace

Sampler sampler_in(const RunConfiguration& configuration, const DataSets& data) {
  const auto& asked = configuration.sampler->weights;
  if (!asked) return {};
  try {
    Sampler sampler = weighted(weights_of(*asked, data, ignored_targets(configuration)));
    sampler.weights = asked;
    return sampler;
  } catch (const Error& error) {
    throw_error("--sampler {}: {}", configuration.sampler.text(), error.what());
  }
}

DataSets load_data(const RunConfiguration& configuration) {
  return prepared(configuration, read_data(configuration));
}

bool are_probabilities(const RunConfiguration& configuration, const SampleRows& targets) {
  return configuration.loss->of_probabilities && is_real(targets.type()) &&
         targets.shape().size() == 1 && targets.elements() > 1;
}

void hold_out(const RunConfiguration& configuration, DataSets& data) {
  const auto& held = configuration.validation;
  if (!held) return;
  try {
    hold_out(data, held->share, held->seed);
  } catch (const Error& error) {
    throw_error("--validation: {}", error.what());
  }
}

DataSets prepared(const RunConfiguration& configuration, DataSets data) {
  data.probabilities = are_probabilities(configuration, data.train.targets);
  if (data.probabilities && !data.unlabelled) {
    const std::string source = fmt::format("--data {}: the", configuration.data.text());
    require_probabilities(data.train.targets, source + " targets");
    if (data.test) require_probabilities(data.test->targets, source + " test targets");
  }
  hold_out(configuration, data);
  try {
    normalise(data);
  } catch (const Error& error) {
    throw_error("--data: {}", error.what());
  }
  require_data(configuration, known_data(data));
  if (data.classes > 0 && data.train.targets.shape().empty()) note_single_class(data);
  return data;
}

std::string data_record(const RunConfiguration& configuration, const DataSets& data) {
  return to_json(record_of(data, configuration.data->kind));
}

std::vector<std::string> class_names(const DataSets& data) {
  if (!data.table) return data.class_names;
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
  return fmt::format("{} on {}: {} {} {}{}{}", name(configuration.model.text(), "model"),
                     name(configuration.data.text(), "data"), sets, data.noun, what_they_are(data),
                     data.left_out == 0 ? ""
                                        : fmt::format("; {} left out for want of a value",
                                                      counted(data.left_out, "row", "rows")),
                     data.notes.empty() ? "" : fmt::format(" ({})", fmt::join(data.notes, "; ")));
}

DataShape shape_of(const DataSets& data) {
  const std::vector<std::int64_t>& shape = data.train.inputs.shape();
  DataShape found{.outputs = data.classes > 0 ? data.classes : data.train.targets.elements(),
                  .vocabulary = data.vocabulary,
                  .real_targets = data.classes == 0 && !data.probabilities};
  found.width = shape.empty() ? 1 : shape.back();
  found.height = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  found.channels = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) found.channels *= shape[i];
  return found;
}

namespace {

std::string option_of(const RunConfiguration& configuration) {
  return "data " + configuration.data.text();
}

// The test set, or all samples if there is none, of kinds of data whose files describe themselves.
SampleSet tested(const RunConfiguration& configuration) {
  if (configuration.data->kind == kDigits) {
    return sample_set_of(builtin_test_digits(static_cast<int>(configuration.threads)));
  }
  DataSets data = read_data(configuration);
  return data.test ? *std::move(data.test) : std::move(data.train);
}

// Reads a table, and notes what it has that training did not have.
SampleSet read_table(const DataRecord& record, const DataSource& source, bool labels,
                     UnseenCategories unseen, std::vector<std::string>& notes) {
  if (unseen == UnseenCategories::refuse) {
    return read_new_csv_samples(source.path, record, labels, source.csv);
  }
  std::int64_t rows = 0;
  SampleSet samples = read_new_csv_samples(source.path, record, labels, source.csv, &rows);
  if (rows > 0) {
    notes.push_back(fmt::format("{}: rows with a category that training did not have: {} of {}",
                                source.path.string(), rows, samples.size()));
  }
  return samples;
}

SampleSet read(const DataRecord& record, const RunConfiguration& configuration, bool labels,
               UnseenCategories unseen, std::vector<std::string>& notes) {
  const DataSource& source = *configuration.data;
  const bool is_sentences = source.kind == "sentences";
  const bool is_text = source.kind == "text" || is_sentences;
  const bool of_table = record.table != nullptr;
  const bool of_text = record.text != nullptr;
  if (of_table != (source.kind == "csv") || of_text != is_text) {
    refuse(option_of(configuration), fmt::format("the model was trained on {} data", record.kind),
           of_text ? "text:FILE" : record.kind + ":FILE");
  }
  if (source.kind == "csv") return read_table(record, source, labels, unseen, notes);
  if (source.kind == "images") return read_new_images(source.path, record, labels);
  if (is_sentences) return make_new_sentence_samples(source.sentences, record);
  if (is_text) return read_new_text_samples(source.path, record);
  if (source.kind == "tensors") {
    return read_new_tensor_samples(source.path, record, labels, source.tensors);
  }
  return tested(configuration);
}

void require_same(const DataRecord& record, const RunConfiguration& configuration,
                  const DataSets& data) {
  const auto& inputs = data.train.inputs;
  const bool same = input_kind_of(inputs.type()) == record.inputs;
  if (inputs.shape() == record.shape && same) return;
  refuse(option_of(configuration),
         fmt::format("its samples are {} of shape [{}]", name_of(inputs.type()),
                     fmt::join(inputs.shape(), ", ")),
         fmt::format("those that the model was trained on, of shape [{}]",
                     fmt::join(record.shape, ", ")));
}

}  // namespace

DataSets load_recorded_data(const std::filesystem::path& run_folder,
                            const RunConfiguration& configuration, bool labels,
                            UnseenCategories unseen) {
  const std::filesystem::path record = run_folder / kDataRecordFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(record, ignored)) {
    refuse(option_of(configuration),
           fmt::format("there is no {}, which says how other data are read", record.string()),
           "the run's own data, or to resume it, which writes that file");
  }
  const DataRecord known = parse_data_record(read_file(record), record.string());
  std::vector<std::string> notes;
  const SampleSet samples = read(known, configuration, labels, unseen, notes);
  DataSets data{.train = samples,
                .test = samples,
                .inputs = known.inputs,
                .classes = known.classes,
                .unlabelled = !labels,
                .vocabulary = known.vocabulary,
                .text = known.text,
                .table = known.table,
                .class_names = known.class_names,
                .notes = std::move(notes),
                .channels = known.channels,
                .features = known.features};
  require_same(known, configuration, data);
  if (labels && known.classes > 0) {
    static_cast<void>(count_classes(*data.test, fmt::format("--data {}", configuration.data.text()),
                                    known.classes, ignored_targets(configuration)));
  }
  if (known.inputs == InputKind::tokens && known.vocabulary > 0 &&
      count_tokens(*data.test, known.vocabulary) == 0) {
    refuse(option_of(configuration), "it has a token that the model does not know",
           fmt::format("0 to {}", known.vocabulary - 1));
  }
  return data;
}

}  // namespace rubato
