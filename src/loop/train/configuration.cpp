#include "configuration.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/state/sha256.hpp"

namespace rubato {

namespace {

std::string text_of(const OptimizerOptions& o) {
  // If the user chose no form, the optimizer's own holds, and old states stay valid.
  const std::string form =
      o.momentum_form ? fmt::format(" form {}", choice_name(kMomentumForms, *o.momentum_form)) : "";
  return fmt::format(
      "{} momentum {} weight_decay {} nesterov {} trust {} betas {} {} amsgrad {} alpha {} "
      "centered {} lr_decay {} initial {} epsilon {}{}",
      choice_name(kOptimizers, o.kind), o.momentum, o.weight_decay, o.nesterov, o.trust, o.beta1,
      o.beta2, o.amsgrad, o.alpha, o.centered, o.lr_decay, o.initial_accumulator, o.epsilon, form);
}

std::string text_of(const ParameterGroup& group) {
  const GroupOptions& o = group.options;
  const auto or_none = [](const std::optional<double>& value) {
    return value ? fmt::to_string(*value) : std::string("-");
  };
  return fmt::format("{} (rate {} decay {} momentum {} layer-wise {})", group.name,
                     o.learning_rate_factor, or_none(o.weight_decay), or_none(o.momentum),
                     o.layer_wise);
}

std::string text_of(const LookaheadOptions& o) {
  // The states of older versions do not mention the weights.
  return fmt::format("k {} alpha {} start {}{}", o.k, o.alpha,
                     choice_name(kLookaheadStarts, o.start),
                     o.weights == LookaheadWeights::slow ? "" : " weights fast");
}

std::string trained_by(const Objective& objective, const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const TrainedArray& trained : objective.trained()) {
    // A function decides which group takes it; functions cannot be compared, but their answers can.
    const auto taker = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.takes(trained.array); });
    text += fmt::format("{} {} {} {}\n", trained.array.name, name_of(trained.array.type),
                        fmt::join(trained.array.shape, "x"), taker - groups.begin());
  }
  return text;
}

std::map<std::string, std::string> lines_of(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos) lines[line.substr(0, equals)] = line.substr(equals + 3);
  }
  return lines;
}

}  // namespace

std::string configuration_of(const TrainOptions& options, const Objective& objective) {
  std::string text;
  const auto put = [&text](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{} = {}\n", name, value);
  };
  std::vector<std::string> groups;
  for (const ParameterGroup& group : options.groups) groups.push_back(text_of(group));
  std::vector<std::string> transforms;
  put("minibatch_size", options.minibatch_size);
  put("remainder", choice_name(kRemainders, options.remainder));
  put("learning_rate", options.learning_rate);
  put("reference_batch_size", options.reference_batch_size);
  put("rule", options.rule);
  put("schedule", options.own_schedule ? "the user's own" : options.schedule);
  put("schedule_unit", choice_name(kScheduleUnits, options.schedule_unit));
  put("watch", options.watch.name());
  put("optimizer", options.own_optimizer ? "the user's own" : text_of(options.optimizer));
  put("groups", fmt::format("{}", fmt::join(groups, ", ")));
  put("lookahead", options.lookahead ? text_of(*options.lookahead) : "none");
  put("clip_norm", options.clip_norm ? fmt::to_string(*options.clip_norm) : "none");
  put("clip_value", options.clip_value ? fmt::to_string(*options.clip_value) : "none");
  // Written only if there are transforms, so that states without them do not depend on the line.
  for (const OwnGradientTransform& transform : options.gradient_transforms) {
    transforms.push_back(transform.name);
  }
  if (!transforms.empty())
    put("gradient_transforms", fmt::format("{}", fmt::join(transforms, ", ")));
  if (options.sampler) put("sampler", options.sampler.name);
  if (options.own_reducer && !options.own_reducer.reproducible)
    put("reducer", options.own_reducer.name);
  const std::optional<double> iterations = options.budget.iterations;
  Budget rest = options.budget;
  rest.iterations.reset();
  put("iterations", iterations ? fmt::to_string(*iterations) : "none");
  // Written only if there are limits other than the iterations.
  if (std::string limits = to_text(rest); !limits.empty()) put("budget", limits);
  put("seed", options.seed);
  put("log_noise", options.log_noise);
  put("training samples", objective.samples());
  put("parameters", Sha256::hex_of(trained_by(objective, options.groups)));
  return text + objective.configuration();
}

void require_same_configuration(const std::string& saved, const std::string& own) {
  const auto before = lines_of(saved);
  const auto now = lines_of(own);
  const auto value_in = [](const auto& lines, const std::string& name) {
    const auto found = lines.find(name);
    return found == lines.end() ? std::string("nothing") : found->second;
  };
  // Merged, so that each name occurs once.
  auto all = now;
  all.insert(before.begin(), before.end());
  std::vector<std::string> differences;
  for (const auto& line : all) {
    const std::string& name = line.first;
    const std::string was = value_in(before, name);
    const std::string is = value_in(now, name);
    if (was != is) differences.push_back(fmt::format("{} was {}, is {}", name, was, is));
  }
  if (differences.empty()) return;
  throw Error(fmt::format(
      "the state belongs to another configuration: {}\nmay be changed: threads, cores, "
      "assignment, a reproducible reducer, more epochs, rows of the trace that no step has used",
      fmt::join(differences, "; ")));
}

}  // namespace rubato
