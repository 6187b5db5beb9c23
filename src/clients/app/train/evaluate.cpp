// This file reads the arguments of both commands, and formats what rubato::evaluate() and
// rubato::predict() return. The arguments are parsed twice: first in `rubato`, to report mistakes
// without loading libtorch, and again in rubato-train, which calls evaluate() or predict()
// (docs/adr/0001-two-programs.md). The configuration of a run, or of --config, is reduced by
// evaluation_configuration() to the options on which results depend, and the arguments then
// override it. Predictions are written as CSV here, as .pt by the workload, and as .safetensors by
// state_bytes().

#include "evaluate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/report/progress.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr std::array<Choice<Prediction>, 2> kPredictions{
    {{Prediction::outputs, "outputs"}, {Prediction::classes, "classes"}}};

constexpr std::array<std::string_view, 3> kFileTypes{".csv", ".pt", ".safetensors"};

// The texts of --help around the options, in the order of EvaluateCommand.
constexpr std::array<CommandTexts, 2> kEvaluateTexts{
    {{"rubato eval",
      "Prints the loss and the accuracy of a model on the test set: of a run, given by its folder, "
      "or of a model with --weights.",
      "Values in [] are the defaults without a RUN. Examples:\n"
      "  rubato eval runs/2024-05-31T12-00-00Z --top-k 5\n"
      "  rubato eval --model script:net.pt --data mnist:DIR\n"
      "  rubato eval --model mlp --weights state.pt --json\n"
      "Exit code: 2 for a mistake in the options or files."},
     {"rubato predict",
      "Writes the outputs of a model for the test set, or for other data: of a run, given by its "
      "folder, or of a model with --weights.",
      "Values in [] are the defaults without a RUN. Examples:\n"
      "  rubato predict runs/2024-05-31T12-00-00Z --what classes --out classes.csv\n"
      "  rubato predict runs/2024-05-31T12-00-00Z --data csv:new.csv --what classes\n"
      "  rubato predict --model script:net.pt --data mnist:DIR --out outputs.pt\n"
      "Exit codes: 2 for a mistake in the options or files, 24 if output could not be\n"
      "written."}}};

void define_evaluation(CommandLine& line, EvaluateArguments& arguments, EvaluateCommand command) {
  line.group("Output");
  if (command == EvaluateCommand::evaluate) {
    line.flag("json", "print JSON", arguments.json);
    return;
  }
  line.choice("what", "all outputs, or the class of the largest",
              std::string(choice_name(kPredictions, arguments.what)), "prediction", kPredictions,
              arguments.what);
  line.choice("unseen",
              "what a category of a table is that training did not have: an error, or a missing "
              "one, whose rows are counted",
              std::string(choice_name(kUnseenCategories, arguments.unseen)), "treatment",
              kUnseenCategories, arguments.unseen);
  line.option("out", "FILE.csv|.pt|.safetensors",
              "where to write them: as CSV, with a row for each sample, or as tensors",
              "stdout, as CSV", [&](const std::string& text) {
                const path file(text);
                const std::string type = file.extension().string();
                if (std::ranges::find(kFileTypes, type) == kFileTypes.end()) {
                  throw_error("'{}' has an unknown type; accepted: a file that ends in {}",
                              short_line(text), fmt::join(kFileTypes, ", "));
                }
                arguments.out = file;
              });
}

void require_something_to_evaluate(const RunConfiguration& run) {
  if (!run.model->classifies) {
    throw_error(
        "--model: {} has no data to be evaluated on; accepted: a classifier, such as softmax",
        run.model.text());
  }
  if (run.weights.empty() && !run.model->script) {
    throw_error(
        "--weights: {} is untrained without them; accepted: a state_dict, or the folder of a run",
        run.model.text());
  }
  require_consistent(run);
}

// Reads the options of a command into `read`.
class EvaluateCommandLine : public CommandLine {
 public:
  EvaluateCommandLine(EvaluateArguments& read, EvaluateCommand command)
      : CommandLine(kEvaluateTexts.at(static_cast<std::size_t>(command))) {
    config_of(
        "run", "RUN",
        "the folder of a run that has ended, with its model, weights and data; --run itself may "
        "be left out",
        [](const std::string& text) { return path(text) / RunFolder::kConfiguration; },
        /*is_operand=*/true);
    config([this, &read](const path& file) {
      const RunConfiguration run = read_configuration(file, {}, read.run);
      if (given().contains("run")) read.folder = file.parent_path();
      read.run = evaluation_configuration(run, given().contains("run") ? read.folder : run.weights);
    });
    define_run_options(*this, read.run, Commands::evaluate);
    define_evaluation(*this, read, command);
  }
};

}  // namespace

EvaluateArguments parse_evaluate_arguments(std::span<const std::string> arguments,
                                           EvaluateCommand command) {
  EvaluateArguments read;
  EvaluateCommandLine line(read, command);
  line.parse(arguments);
  const auto& given = line.given();
  read.other_data = !read.folder.empty() && given.contains("data") && !given.contains("validation");
  require_something_to_evaluate(read.run);
  if (given.contains("unseen") && !(read.other_data && read.run.data->kind == "csv")) {
    throw_error(
        "--unseen: only a table that was not trained on has such categories; accepted: with RUN "
        "--data csv:FILE");
  }
  // The metrics of plug-ins that a run has recorded belong to its training; only a given --metric
  // is refused.
  if (given.contains("metric") && !read.run.metric->own.empty()) {
    throw_error(
        "--metric {}: a plug-in's metric needs the epochs of a training; accepted: built-in "
        "metrics",
        read.run.metric.text());
  }
  return read;
}

std::vector<OptionHelp> own_options(EvaluateCommand command) {
  EvaluateArguments read;
  auto own = own_options(EvaluateCommandLine(read, command));
  std::erase_if(own, [](const OptionHelp& described) { return described.name == "config"; });
  return own;
}

namespace {

EvaluationReport report_of(const RunConfiguration& run, const Evaluation& evaluation) {
  EvaluationReport report{.evaluation = evaluation};
  if (evaluation.top_k_accuracy) report.top_k = test_metrics_of(run).top_k;
  return report;
}

std::string text_of(const EvaluationReport& report) {
  TextTable table({Column::left, Column::right});
  for (const auto& [label, value, progress] :
       shown_fields(evaluation_report_schema(), report, report.top_k.value_or(0), Digits::many)) {
    table.add({label, value});
  }
  return table.text();
}

// Samples as the first columns of a CSV: their numbers and, if they have names, these.
class SampleColumns {
 public:
  explicit SampleColumns(std::vector<std::string> names) : names_(std::move(names)) {}

  [[nodiscard]] std::string header() const { return names_.empty() ? "sample" : "sample,file"; }
  [[nodiscard]] std::string of(std::size_t sample) const {
    return names_.empty() ? fmt::to_string(sample)
                          : fmt::format("{},{}", sample, csv_field(names_.at(sample)));
  }

 private:
  std::vector<std::string> names_;
};

template <class T>
void add_rows(std::string& csv, const NamedArray& array, std::size_t columns,
              const SampleColumns& samples) {
  const auto values = array.values<T>();
  for (std::size_t row = 0; row * columns < values.size(); ++row) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n", samples.of(row),
                   fmt::join(values.subspan(row * columns, columns), ","));
  }
}

// Writes a header and a row for each sample, then its elements in row-major order.
std::string csv_of(const NamedArray& array, const SampleColumns& named) {
  const auto samples = static_cast<std::size_t>(array.shape.front());
  const std::size_t columns = array.size() / samples;
  std::string csv = named.header();
  for (std::size_t i = 0; i < columns; ++i) {
    csv += columns == 1 ? "," + array.name : fmt::format(",{}{}", array.name, i);
  }
  csv += '\n';
  switch (array.type) {
    case ElementType::f32:
      add_rows<float>(csv, array, columns, named);
      return csv;
    case ElementType::f64:
      add_rows<double>(csv, array, columns, named);
      return csv;
    case ElementType::i64:
      add_rows<std::int64_t>(csv, array, columns, named);
      return csv;
    default:
      throw_error("outputs of type {} are not written as CSV; accepted: --out FILE.pt",
                  name_of(array.type));
  }
}

// Writes the class of each sample by name; an output beyond the names is written as its number.
std::string csv_of_names(const NamedArray& classes, const std::vector<std::string>& names,
                         const SampleColumns& samples) {
  std::string csv = fmt::format("{},{}\n", samples.header(), classes.name);
  std::size_t sample = 0;
  for (const std::int64_t of : classes.values<std::int64_t>()) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n", samples.of(sample++),
                   static_cast<std::size_t>(of) < names.size()
                       ? csv_field(names[static_cast<std::size_t>(of)])
                       : fmt::to_string(of));
  }
  return csv;
}

std::string csv_of(const ArrayCopies& found, const SampleColumns& samples) {
  if (found.arrays().size() != 1) {
    throw_error(
        "the model has {} outputs, which are not written as one CSV; accepted: --out FILE.pt",
        found.arrays().size());
  }
  return csv_of(found.arrays().front(), samples);
}

std::string safetensors_of(const ArrayCopies& found) {
  State state;
  for (const NamedArray& array : found.arrays()) put_array(state, "", array);
  return state_bytes(state);
}

}  // namespace

ExitCode evaluate(const EvaluateArguments& arguments, const LoadWorkload& load) {
  const EvaluationReport report =
      report_of(arguments.run, rubato::evaluate(*load(arguments.run), arguments.run));
  print_out(arguments.json ? json_text(json_of(evaluation_report_schema(), report), 2) + '\n'
                           : text_of(report));
  return ExitCode::good;
}

ExitCode predict(const EvaluateArguments& arguments, const LoadWorkload& load) {
  const std::shared_ptr<const Workload> workload = load(arguments.run);
  const ArrayCopies found = rubato::predict(*workload, arguments.run, arguments.what);
  const std::vector<std::string> names = workload->class_names();
  const SampleColumns samples(workload->sample_names());
  const auto csv = [&] {
    return arguments.what == Prediction::classes && !names.empty()
               ? csv_of_names(found.arrays().front(), names, samples)
               : csv_of(found, samples);
  };
  if (!arguments.out) {
    print_out(csv());
    return ExitCode::good;
  }
  const std::string type = arguments.out->extension().string();
  if (type == ".pt") {
    write_file(*arguments.out, workload->weights(found.arrays(), {}));
  } else {
    write_file(*arguments.out, type == ".csv" ? csv() : safetensors_of(found));
  }
  return ExitCode::good;
}

}  // namespace rubato::app
