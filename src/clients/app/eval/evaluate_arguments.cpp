#include "evaluate_arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr std::array<Choice<Prediction>, 2> kPredictions{
    {{Prediction::outputs, "outputs"}, {Prediction::classes, "classes"}}};

constexpr std::array<std::string_view, 3> kFileTypes{".csv", ".pt", ".safetensors"};

// The texts of --help around the options, in the order of EvaluateCommand.
struct EvaluateTexts {
  const char* name;
  const char* description;
  const char* footer;
};
constexpr std::array<EvaluateTexts, 2> kEvaluateTexts{
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
  line.option("what", choice_names(kPredictions), "all outputs, or the class of the largest",
              std::string(choice_name(kPredictions, arguments.what)), [&](const std::string& text) {
                arguments.what = parse_choice("prediction", text, kPredictions);
              });
  line.option("out", "FILE.csv|.pt|.safetensors",
              "where to write them: as CSV, with a row for each sample, or as tensors",
              "stdout, as CSV", [&](const std::string& text) {
                const path file(text);
                const std::string type = file.extension().string();
                if (std::ranges::find(kFileTypes, type) == kFileTypes.end()) {
                  throw Error(
                      fmt::format("'{}' has an unknown type; accepted: a file that ends in "
                                  "{}",
                                  text, fmt::join(kFileTypes, ", ")));
                }
                arguments.out = file;
              });
}

void require_something_to_evaluate(const RunConfiguration& run) {
  if (!run.model->classifies) {
    throw Error(
        fmt::format("--model: {} has no data to be evaluated on; accepted: a classifier, such as "
                    "softmax",
                    run.model.text()));
  }
  if (run.weights.empty() && !run.model->script) {
    throw Error(
        fmt::format("--weights: {} is untrained without them; accepted: a state_dict, or the "
                    "folder of a run",
                    run.model.text()));
  }
  require_consistent(run);
}

// Reads the options of a command into `read`.
class EvaluateCommandLine : public CommandLine {
 public:
  EvaluateCommandLine(EvaluateArguments& read, EvaluateCommand command)
      : EvaluateCommandLine(read, command, kEvaluateTexts.at(static_cast<std::size_t>(command))) {}

 private:
  EvaluateCommandLine(EvaluateArguments& read, EvaluateCommand command, const EvaluateTexts& texts)
      : CommandLine(texts.name, texts.description) {
    config_of(
        "run", "RUN",
        "the folder of a run that has ended, with its model, weights and data; --run itself may "
        "be left out",
        [](const std::string& text) { return path(text) / "config.toml"; },
        /*is_operand=*/true);
    config([this, &read](const path& file) {
      const RunConfiguration run = read_configuration(file, {}, read.run);
      if (given().contains("run")) read.folder = file.parent_path();
      read.run = evaluation_configuration(run, given().contains("run") ? read.folder : run.weights);
    });
    define_run_options(*this, read.run, Commands::evaluate);
    define_evaluation(*this, read, command);
    footer(texts.footer);
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
  // The metrics of plug-ins that a run has recorded belong to its training; only a given --metric
  // is refused.
  if (given.contains("metric") && !own_metrics(read.run).empty()) {
    throw Error(
        fmt::format("--metric {}: a plug-in's metric needs the epochs of a training; "
                    "accepted: built-in metrics",
                    read.run.metric));
  }
  return read;
}

std::vector<OptionHelp> own_options(EvaluateCommand command) {
  EvaluateArguments read;
  auto own = EvaluateCommandLine(read, command).descriptions();
  std::erase_if(own, [](const OptionHelp& described) {
    return described.name == "config" || std::ranges::find(run_options(), described.name,
                                                           &RunOption::name) != run_options().end();
  });
  return own;
}

}  // namespace rubato::app
