#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/model_options.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "runs/config/values/fault_options.hpp"
#include "runs/config/values/timeline_steps.hpp"

namespace rubato {

// Defines Parsed<T>::parse() for a type whose text another module reads; `parsed` is an expression
// of `text`.
#define RUBATO_PARSE(parsed, ...)                                                        \
  template <>                                                                            \
  std::shared_ptr<const __VA_ARGS__> Parsed<__VA_ARGS__>::parse(const std::string& text, \
                                                                const Extensions&) {     \
    return std::make_shared<const __VA_ARGS__>(parsed);                                  \
  }

RUBATO_PARSE(parse_cluster(text, kBytesOfModel), ClusterModel)
RUBATO_PARSE(parse_random_faults(text), FaultOptions)
RUBATO_PARSE(parse_initializer(text), InitializerOptions)
RUBATO_PARSE(parse_replaced_operators(text), ReplacedOperators)
RUBATO_PARSE(parse_precision(text), PrecisionOptions)
RUBATO_PARSE(parse_checkpoint_interval(text), std::optional<CheckpointInterval>)
RUBATO_PARSE(parse_augmentations(text), std::vector<AugmentationOptions>)
RUBATO_PARSE(parse_faults(text), std::vector<Fault>)
RUBATO_PARSE(parse_stragglers(text), std::vector<Straggler>)
RUBATO_PARSE(parse_timeline(text), TimelineSteps)

#undef RUBATO_PARSE

}  // namespace rubato
