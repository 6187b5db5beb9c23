#include "run/recorded_data.hpp"

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>

#include "config/data_source.hpp"
#include "core/file.hpp"
#include "data/data_files.hpp"
#include "data/data_record.hpp"
#include "run/run_data.hpp"

namespace rubato {

namespace {

// Of kinds whose files say alone what they are.
SampleSet tested(const RunConfiguration& configuration) {
  DataSets data = read_data(configuration);
  return data.test ? *std::move(data.test) : std::move(data.train);
}

SampleSet read(const DataRecord& record, const RunConfiguration& configuration, bool labels) {
  const DataSource source = parse_data(configuration.data, configuration.extensions.data);
  const bool of_one_kind = record.table != nullptr || !record.alphabet.empty();
  if ((of_one_kind || source.kind == "csv" || source.kind == "text") &&
      source.kind != record.kind) {
    throw Error(fmt::format("--data {}: the model was trained on {} data; accepted: {}:FILE",
                            configuration.data, record.kind, record.kind));
  }
  if (source.kind == "csv") return read_new_csv_samples(source.path, record, labels);
  if (source.kind == "text") return read_new_text_samples(source.path, record);
  if (source.kind == "tensors") return read_new_tensor_samples(source.path, record, labels);
  return tested(configuration);
}

void require_same(const DataRecord& record, const RunConfiguration& configuration,
                  const DataSets& data) {
  const auto& inputs = data.train.inputs;
  const bool same = input_kind_of(inputs.type()) == record.inputs;
  if (inputs.shape() == record.shape && same) return;
  throw Error(
      fmt::format("--data {}: its samples are {} of shape [{}]; accepted: those that the model was "
                  "trained on, of shape [{}]",
                  configuration.data, name_of(inputs.type()), fmt::join(inputs.shape(), ", "),
                  fmt::join(record.shape, ", ")));
}

}  // namespace

DataSets load_recorded_data(const std::filesystem::path& run_folder,
                            const RunConfiguration& configuration, bool labels) {
  const std::filesystem::path record = run_folder / kDataRecordFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(record, ignored)) {
    throw Error(
        fmt::format("--data {}: there is no {}, which says how other data are read; accepted: the "
                    "run's own data, or to resume it, which writes that file",
                    configuration.data, record.string()));
  }
  const DataRecord known = parse_data_record(read_file(record), record.string());
  const SampleSet samples = read(known, configuration, labels);
  DataSets data{.train = samples,
                .test = samples,
                .inputs = known.inputs,
                .classes = known.classes,
                .vocabulary = known.vocabulary,
                .alphabet = known.alphabet,
                .table = known.table,
                .channels = known.channels,
                .features = known.features};
  require_same(known, configuration, data);
  if (labels && known.classes > 0) {
    static_cast<void>(
        count_classes(*data.test, fmt::format("--data {}", configuration.data), known.classes));
  }
  if (known.inputs == InputKind::tokens && known.vocabulary > 0 &&
      count_tokens(*data.test, known.vocabulary) == 0) {
    throw Error(
        fmt::format("--data {}: it has a token that the model does not know; accepted: 0 to {}",
                    configuration.data, known.vocabulary - 1));
  }
  return data;
}

}  // namespace rubato
