#include "recorded_data.hpp"

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/system/file.hpp"
#include "loop/data/data_record.hpp"
#include "loop/data/files/data_files.hpp"
#include "runs/config/allowed/allowed.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/run/workload/run_data.hpp"

namespace rubato {

namespace {

std::string option_of(const RunConfiguration& configuration) {
  return "data " + configuration.data.text();
}

// The test set, or all samples if there is none, of kinds of data whose files describe themselves.
SampleSet tested(const RunConfiguration& configuration) {
  DataSets data = read_data(configuration);
  return data.test ? *std::move(data.test) : std::move(data.train);
}

SampleSet read(const DataRecord& record, const RunConfiguration& configuration, bool labels) {
  const DataSource& source = *configuration.data;
  const bool of_one_kind = record.table != nullptr || !record.alphabet.empty();
  if ((of_one_kind || source.kind == "csv" || source.kind == "text") &&
      source.kind != record.kind) {
    refuse(option_of(configuration), fmt::format("the model was trained on {} data", record.kind),
           record.kind + ":FILE");
  }
  if (source.kind == "csv") return read_new_csv_samples(source.path, record, labels);
  if (source.kind == "images") return read_new_images(source.path, record, labels);
  if (source.kind == "text") return read_new_text_samples(source.path, record);
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
                            const RunConfiguration& configuration, bool labels) {
  const std::filesystem::path record = run_folder / kDataRecordFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(record, ignored)) {
    refuse(option_of(configuration),
           fmt::format("there is no {}, which says how other data are read", record.string()),
           "the run's own data, or to resume it, which writes that file");
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
                .class_names = known.class_names,
                .channels = known.channels,
                .features = known.features};
  require_same(known, configuration, data);
  if (labels && known.classes > 0) {
    static_cast<void>(count_classes(*data.test, fmt::format("--data {}", configuration.data.text()),
                                    known.classes));
  }
  if (known.inputs == InputKind::tokens && known.vocabulary > 0 &&
      count_tokens(*data.test, known.vocabulary) == 0) {
    refuse(option_of(configuration), "it has a token that the model does not know",
           fmt::format("0 to {}", known.vocabulary - 1));
  }
  return data;
}

}  // namespace rubato
