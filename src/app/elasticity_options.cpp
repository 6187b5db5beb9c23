#include "app/elasticity_options.hpp"

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/number.hpp>
#include <rubato/plan/shuffle.hpp>

#include "app/idle_options.hpp"

namespace rubato::app {

void define_elasticity(CommandLine& line, ElasticityOptions& options) {
  line.group("Elasticity");
  line.option("trace", "FILE.csv|N|elastic",
              "the global batch size of every step: a file with the header 'step,batchsize' or "
              "'step,batchsize,cores', always N samples, or the built-in trace",
              options.trace, [&](const std::string& text) { options.trace = text; });
  line.option(
      "on-trace-end", names_of(kTraceEnds),
      "what follows the last step of the trace: nothing, and needing more is an error; that "
      "step for ever; the trace again; or the end of the training [error for a file, cycle "
      "for elastic]",
      "", [&](const std::string& text) {
        options.on_trace_end = parse_choice("end", text, kTraceEnds);
      });
  line.option("cores", "N", "emulated accelerator cores, where the trace does not say",
              fmt::to_string(options.cores),
              [&](const std::string& text) { options.cores = parse_whole(text, 1, kMaxCores); });
  line.option("minibatch", "N", "samples of one forward and backward pass on one core",
              fmt::to_string(options.minibatch), [&](const std::string& text) {
                options.minibatch = parse_whole(text, 1, kMaxDatasetSize);
              });
  line.option("assignment", names_of(kAssignments),
              "how a step's minibatches are given to its cores: each one run, or dealt out in turn",
              std::string(choice_name(kAssignments, options.assignment)),
              [&](const std::string& text) {
                options.assignment = parse_choice("assignment", text, kAssignments);
              });
}

void require_trace_end(const CommandLine& line, const ElasticityOptions& options) {
  const IdleOption end{.option = "on-trace-end",
                       .idle = is_number(options.trace),
                       .why = "a constant trace has no end",
                       .accepted = "with a file or elastic"};
  require_none_idle(line, {&end, 1});
}

}  // namespace rubato::app
