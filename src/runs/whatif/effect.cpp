#include <algorithm>
#include <cmath>
#include <functional>

#include "base/core/text/json.hpp"
#include "whatif.hpp"

namespace rubato {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kSecondsOfHour = 3600;

std::optional<double> difference(const std::optional<double>& one,
                                 const std::optional<double>& other) {
  if (!one || !other || !std::isfinite(*one) || !std::isfinite(*other)) return std::nullopt;
  return *one - *other;
}

std::optional<double> samples_to(const TrainingOutcome& outcome, const LearningTarget& target) {
  const auto* const epoch = outcome.reached(target);
  return epoch == nullptr ? std::nullopt : std::optional<double>(epoch->samples);
}

}  // namespace

Effect effect_of(const TrainingOutcome& run, const TrainingOutcome& without,
                 const LearningTarget& target) {
  Effect effect{.loss = difference(run.loss(), without.loss()),
                .accuracy = difference(run.accuracy(), without.accuracy()),
                .target_samples = difference(samples_to(run, target), samples_to(without, target)),
                .substeps = static_cast<double>(run.substeps - without.substeps)};
  if (run.time && without.time) {
    effect.hours = (run.time->seconds - without.time->seconds) / kSecondsOfHour;
    effect.money = run.time->money - without.time->money;
    effect.lost_seconds = run.lost_seconds() - without.lost_seconds();
  }
  return effect;
}

namespace {

std::optional<double> hours_of(const std::optional<double>& seconds) {
  return seconds ? std::optional(*seconds / kSecondsOfHour) : std::nullopt;
}

Json json_of(const Effect& effect) {
  return {{"loss", or_null(effect.loss)},
          {"accuracy", or_null(effect.accuracy)},
          {"target_samples", or_null(effect.target_samples)},
          {"hours", or_null(effect.hours)},
          {"money", or_null(effect.money)},
          {"lost_hours", or_null(hours_of(effect.lost_seconds))},
          {"substeps", effect.substeps}};
}

std::string_view name_of(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::Kind::taken:
      return "taken";
    case RunEvent::Kind::given:
      return "given";
    case RunEvent::Kind::batch:
      return "batch";
    case RunEvent::Kind::fault:
      break;
  }
  return "fault";
}

Json json_of(const RunEvent& event, std::size_t number) {
  Json json{{"number", number},
            {"kind", name_of(event.kind)},
            {"step", event.steps + 1},
            {"hours", or_null(hours_of(event.seconds))},
            {"words", event.words()}};
  if (event.fault) {
    json["cores"] = event.fault->cores;
    json["minibatches_again"] = event.fault->minibatches;
    return json;
  }
  json["batch"] = {event.before.batch_size, event.after.batch_size};
  if (event.before.cores && event.after.cores) {
    json["cores"] = {*event.before.cores, *event.after.cores};
  }
  return json;
}

}  // namespace

Json to_json(const WhatIfResult& result) {
  Json json{{"target_accuracy", or_null(result.target.accuracy)},
            {"target_loss", or_null(result.target.loss)},
            {"loss_of", result.has_test ? "test" : "training"},
            {"events_skipped", result.plan.events_skipped},
            {"run", to_json(result.run)},
            {"events", Json::array()},
            {"counterfactuals", Json::array()}};
  for (std::size_t i = 0; i < result.events.size(); ++i) {
    json["events"].push_back(json_of(result.events[i], i + 1));
  }
  for (const Counterfactual& one : result.counterfactuals) {
    Json events = Json::array();
    for (const std::size_t event : one.events) events.push_back(event + 1);
    Json effects = Json::array();
    effects.push_back(json_of(effect_of(result.run, one.outcome, result.target)));
    for (const Counterfactual::OtherOrder& other : one.others) {
      effects.push_back(json_of(effect_of(other.run, other.outcome, result.target)));
    }
    json["counterfactuals"].push_back({{"name", one.name},
                                       {"events", std::move(events)},
                                       {"steps_shared", one.steps},
                                       {"same_bits", one.same_bits},
                                       {"outcome", to_json(one.outcome)},
                                       {"effects", std::move(effects)}});
  }
  return json;
}

}  // namespace rubato
