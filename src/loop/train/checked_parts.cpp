#include "checked_parts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "checked_options.hpp"

namespace rubato {

namespace {

std::string text_of(const OptimizerOptions& o) {
  // Other methods' options are written, too, so that old states stay valid.
  const auto sgd = method_options<SgdOptions>(o.method);
  const auto lars = method_options<LarsOptions>(o.method);
  const auto adam = method_options<AdamOptions>(o.method);
  const auto rmsprop = method_options<RmspropOptions>(o.method);
  const auto adagrad = method_options<AdagradOptions>(o.method);
  const double epsilon = std::holds_alternative<AdagradOptions>(o.method)   ? adagrad.epsilon
                         : std::holds_alternative<RmspropOptions>(o.method) ? rmsprop.epsilon
                                                                            : adam.epsilon;
  // If the user chose no form, the optimizer's own holds.
  const auto form = sgd.momentum_form ? sgd.momentum_form : lars.momentum_form;
  std::string text = fmt::format(
      "{} momentum {} weight_decay {} nesterov {} trust {} betas {} {} amsgrad {} alpha {} "
      "centered {} lr_decay {} initial {} epsilon {}{}{}",
      optimizer_name(o.method), o.momentum, o.weight_decay, sgd.nesterov, lars.trust, adam.beta1,
      adam.beta2, adam.amsgrad, rmsprop.alpha, rmsprop.centered, adagrad.lr_decay,
      adagrad.initial_accumulator, epsilon,
      form ? fmt::format(" form {}", choice_name(kMomentumForms, *form)) : "",
      adam.second_moment == SecondMoment::mean
          ? ""
          : fmt::format(" second_moment {}", choice_name(kSecondMoments, adam.second_moment)));
  const auto* const muon = std::get_if<MuonOptions>(&o.method);
  if (muon == nullptr) return text;
  return fmt::format(
      "{} muon_momentum {} muon_nesterov {} steps {} scale {} beta1 {} beta2 {} muon_epsilon {} "
      "elements {}",
      text, muon->momentum, muon->nesterov, muon->steps, choice_name(kMuonScales, muon->scale),
      muon->beta1, muon->beta2, muon->epsilon, muon->adamw.empty() ? "of-vectors" : muon->adamw);
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

std::string text_of(const RuleAdjustments& adjustments) {
  const MemoriesInSamples& in_samples = adjustments.memories;
  const BatchChange& change = adjustments.on_batch_change;
  return fmt::format("momentum {} beta1 {} beta2 {} lookahead {} decay {} mean {} squares {}",
                     in_samples.momentum, in_samples.beta1, in_samples.beta2, in_samples.lookahead,
                     choice_name(kDecayRules, adjustments.decay),
                     choice_name(kTreatments, change.of_mean()),
                     choice_name(kTreatments, change.of_squares()));
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
  put("rule", options.rule.text());
  put("schedule", options.own_schedule ? "the user's own" : options.schedule.text());
  put("schedule_unit", choice_name(kScheduleUnits, options.schedule_unit));
  put("watch", options.watch.name());
  put("optimizer", options.own_optimizer ? "the user's own" : text_of(options.optimizer));
  put("groups", fmt::format("{}", fmt::join(groups, ", ")));
  put("lookahead", options.lookahead ? text_of(*options.lookahead) : "none");
  // Written only where there are averages, as in the states of older versions.
  if (options.ema_half_life) put("ema_half_life", *options.ema_half_life);
  const RuleAdjustments& adjustments = options.adjustments;
  // Written only where batches change more than the rate, as in the states of older versions.
  if (adjustments != RuleAdjustments()) put("adjustments", text_of(adjustments));
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

namespace {

struct Change {
  std::string was;
  std::string is;
};

// The lines that differ, by name.
std::map<std::string, Change> changes_of(const std::string& saved, const std::string& own) {
  std::map<std::string, Change> changes;
  for (const auto& [name, was] : lines_of(saved)) changes[name] = {was, "nothing"};
  for (const auto& [name, is] : lines_of(own)) {
    changes.try_emplace(name, Change{.was = "nothing", .is = {}}).first->second.is = is;
  }
  std::erase_if(changes, [](const auto& line) { return line.second.was == line.second.is; });
  return changes;
}

std::string text_of(const std::map<std::string, Change>& changes) {
  std::vector<std::string> texts;
  texts.reserve(changes.size());
  for (const auto& [name, change] : changes) {
    texts.push_back(fmt::format("{} was {}, is {}", name, change.was, change.is));
  }
  return fmt::to_string(fmt::join(texts, "; "));
}

// Describes what an optimizer remembers, by the text_of() its options: equal for optimizers that
// can continue from each other's memory.
std::string memory_of(const std::string& optimizer) {
  std::istringstream words(optimizer);
  std::string method;
  words >> method;
  // AdamW is Adam with another weight decay.
  std::string memory = method == "adamw" ? "adam" : method;
  std::string value;
  for (std::string name; words >> name >> value;) {
    // A pattern of the user's, the last of them, may have blanks.
    if (name == "elements") {
      std::string rest;
      std::getline(words, rest);
      value += rest;
    }
    if (name == "momentum") memory += value == "0" ? " without momentum" : " with momentum";
    if (name == "amsgrad" || name == "centered" || name == "form" || name == "elements")
      memory += fmt::format(" {}{}", name, value);
    // There are two of them.
    if (name == "betas") words >> value;
  }
  return memory;
}

}  // namespace

void require_same_configuration(const std::string& saved, const std::string& own) {
  const auto changes = changes_of(saved, own);
  if (changes.empty()) return;
  throw_error(
      "the state belongs to another configuration: {}\nmay be changed: threads, cores, assignment, "
      "a reproducible reducer, more epochs, rows of the trace that no step has used",
      text_of(changes));
}

NewParts new_parts(const std::string& saved, const std::string& own) {
  constexpr std::array<std::string_view, 23> kMayDiffer{"adjustments",
                                                        "augment",
                                                        "buffers",
                                                        "budget",
                                                        "clip_norm",
                                                        "clip_value",
                                                        "ema_half_life",
                                                        "gradient_transforms",
                                                        "iterations",
                                                        "learning_rate",
                                                        "log_noise",
                                                        "lookahead",
                                                        "operators",
                                                        "optimizer",
                                                        "precision",
                                                        "reducer",
                                                        "reference_batch_size",
                                                        "rule",
                                                        "sampler",
                                                        "schedule",
                                                        "schedule_unit",
                                                        "seed",
                                                        "watch"};
  auto changes = changes_of(saved, own);
  const auto differs = [&](const char* name) { return changes.contains(name); };
  const auto optimizer = changes.find("optimizer");
  const NewParts parts{
      .rule = differs("rule"),
      .schedule = differs("schedule") || differs("schedule_unit") || differs("watch"),
      .optimizer = optimizer != changes.end() &&
                   memory_of(optimizer->second.was) != memory_of(optimizer->second.is),
      .rate = differs("learning_rate")};
  std::erase_if(changes, [&](const auto& line) {
    return std::ranges::find(kMayDiffer, line.first) != kMayDiffer.end();
  });
  if (changes.empty()) return parts;
  throw_error("a fork cannot continue from the state: {}\nmay be changed: {}", text_of(changes),
              fmt::join(kMayDiffer, ", "));
}

void bind_data(StateVisitor& state, const Objective& objective) {
  const auto require_same = [](const std::string& before, const std::string& now,
                               std::string_view what) {
    if (before == now) return;
    throw_error(
        "the {} data are not the data of the run; accepted: the same samples in the same order",
        what);
  };
  const std::string train = objective.fingerprint();
  require_same(state.bound("data.train", train), train, "training");
  // A test set is compared only if there was one then and is one now.
  if (!objective.has_test()) return;
  const std::string test = objective.test_fingerprint();
  require_same(state.bound_if_there("data.test", test), test, "test");
}

// The epoch ends where the row after it says so, a row that no step has used.
void require_same_epochs(Planner planner, const Walk& walk, bool part) {
  planner.go_to(EpochIndex{0}, StepIndex{0});
  for (EpochIndex epoch; epoch < walk.epoch(); ++epoch) static_cast<void>(planner.next());
  // After a part of an epoch was evaluated, no step may follow in that epoch.
  if (!part && planner.next_step() == walk.first_step()) return;
  throw_error(
      "{}: epoch {} of the run ended before this step, and in this trace it continues; accepted: a "
      "trace in which it ends there, too",
      planner.trace().where(walk.step()), walk.epoch().value() + (part ? 1 : 0));
}

namespace {

void require_independence_of_cores(const Objective& objective, const TrainOptions& options) {
  const std::string why = objective.depends_on_cores();
  if (why.empty()) return;
  if (options.exact) throw_error("{}; accepted: with exact = false", why);
  if (options.dealing == Dealing::in_turns) {
    throw_error(
        "{}, and evaluators dealt in turns divide a core's minibatches; accepted: "
        "Dealing::by_thread",
        why);
  }
}

// Several hosts exchange nothing but sums.
void require_sums(const Objective& objective, const TrainOptions& options) {
  if (!are_several(options.hosts.get())) return;
  if (const std::string why = objective.depends_on_cores(); !why.empty()) {
    throw_error("{}; accepted: on one host", why);
  }
  if (const std::string why = objective.needs_one_host(); !why.empty()) {
    throw_error("{}; accepted: on one host", why);
  }
}

bool is_of_test(const WatchedMetric& metric) {
  return metric.metric() && *metric.metric() != Metric::train_loss;
}

}  // namespace

std::unique_ptr<StepSource> checked_source(std::unique_ptr<StepSource> source) {
  if (source == nullptr)
    throw Error("a trainer needs a source of its steps; accepted: any but null");
  if (source->max_batch() < 1) {
    throw_error("the source of the steps has a largest batch size of {}; accepted: at least 1",
                source->max_batch());
  }
  return source;
}

TrainOptions options_for(const StepSource& source, TrainOptions options) {
  options.log_noise = options.log_noise || source.needs_noise_scale();
  if (options.budget.needs_clock() && !source.has_clock()) {
    throw_error(
        "a budget of {} needs modelled time; accepted: with a source of the steps that has a "
        "clock, such as ClockedSource",
        to_text(options.budget));
  }
  return checked_options(std::move(options));
}

PlanOptions plan_options(const Objective& objective, const TrainOptions& options) {
  return {.dataset_size = objective.samples(),
          .minibatch_size = options.minibatch_size,
          .cores = options.cores,
          .remainder = options.remainder,
          .epochs = options.epochs};
}

std::optional<Planner> checked_trace(const StepSource& source, const Objective& objective,
                                     const TrainOptions& options) {
  if (source.trace() == nullptr) return std::nullopt;
  Planner planner(*source.trace(), plan_options(objective, options));
  require_epochs(planner, options.epochs);
  return planner;
}

StepRange steps_to_come(const StepSource& source, const Walk& walk) {
  StepRange range{.least = walk.max_minibatches(), .most = walk.max_minibatches()};
  if (source.trace() == nullptr) return range;
  const std::int64_t minibatch = walk.planner().options().minibatch_size;
  for (const TraceStep& step : source.trace()->steps()) {
    range.least = std::min(range.least, step.batch_size / minibatch);
    if (!step.host_cores.empty()) range.host_cores.insert(step.host_cores);
  }
  return range;
}

std::unique_ptr<LrSchedule> schedule_of(const TrainOptions& options) {
  if (options.own_schedule) {
    auto own = options.own_schedule();
    if (own == nullptr) throw Error("own_schedule makes no schedule; accepted: any but null");
    return own;
  }
  auto schedule = options.schedule.make(options.watch);
  require_rate(*schedule, options.schedule.text(), options.schedule_unit);
  return schedule;
}

void require_trainable(const Objective& objective, const TrainOptions& options,
                       const LrSchedule& schedule) {
  require_independence_of_cores(objective, options);
  require_sums(objective, options);
  if (schedule.watches() && !objective.has_test() && is_of_test(options.watch)) {
    throw_error("the schedule watches {}, but there is no test set; accepted: train-loss",
                options.watch.name());
  }
}

}  // namespace rubato
