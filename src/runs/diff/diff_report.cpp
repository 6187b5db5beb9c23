// The text says how far both are equal, then what differs in the step, then why: the options in
// FirstDifference::options are the reason, and the others that differ are listed apart. A
// difference before the first step or in the files has no stage in a step, so its sentence stands
// alone. Facts that differ, such as kernels, come last. JSON leaves out members without a value,
// but always has `first`, which is null if both are equal.

#include "diff_report.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/core/text/json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The words for a stage in a step, after "differs".
std::string_view words_of(DiffStage stage) {
  switch (stage) {
    case DiffStage::start:
    case DiffStage::state:
      return "in its state";
    case DiffStage::trace:
      return "by its trace";
    case DiffStage::samples:
      return "in its samples";
    case DiffStage::gradient:
      return "in the gradient of a minibatch";
    case DiffStage::sum:
      return "in the sum of the gradients";
    case DiffStage::rule:
      return "by its rate";
    case DiffStage::clipping:
      return "by clipping";
    case DiffStage::update:
      return "in its update";
    case DiffStage::kernels:
      return "by what computed it";
    case DiffStage::length:
      return "because one has no more steps";
    case DiffStage::files:
      return "in the files of the runs";
    case DiffStage::unexplained:
      break;
  }
  return "for an unknown reason";
}

std::string texts_of(const NamedDifference& difference) {
  return fmt::format("{} and {}", difference.texts[0], difference.texts[1]);
}

// "--lr 0.01 and 0.02, --seed 42 and 43"; the options that `wanted` wants.
template <class Wanted>
std::string options_text(const RunsDifference& difference, const Wanted& wanted) {
  std::vector<std::string> texts;
  for (const NamedDifference& option : difference.options) {
    if (wanted(option.name)) {
      texts.push_back(fmt::format("--{} {}", option.name, texts_of(option)));
    }
  }
  return fmt::to_string(fmt::join(texts, ", "));
}

std::string reason_text(const RunsDifference& difference) {
  const FirstDifference& first = *difference.first;
  const auto is_reason = [&](const std::string& name) {
    return std::ranges::find(first.options, name) != first.options.end();
  };
  const std::string reasons = options_text(difference, is_reason);
  const std::string others =
      options_text(difference, [&](const std::string& name) { return !is_reason(name); });
  std::string text;
  if (!reasons.empty()) text += fmt::format("reason: {}\n", reasons);
  if (!others.empty()) text += fmt::format("other options that differ: {}\n", others);
  return text;
}

Json named(const std::vector<NamedDifference>& differences) {
  Json list = Json::array();
  for (const NamedDifference& one : differences) {
    list.push_back({{"name", one.name}, {"a", one.texts[0]}, {"b", one.texts[1]}});
  }
  return list;
}

Json json_of(const DifferentElement& element) {
  if (!element.incomparable.empty()) {
    return {{"array", element.array}, {"incomparable", element.incomparable}};
  }
  Json json{{"array", element.array}, {"index", element.index}, {"a", element.a}, {"b", element.b}};
  if (element.ulps) json["ulps"] = *element.ulps;
  json["elements"] = element.elements;
  return json;
}

Json json_of(const FirstDifference& first) {
  Json json{{"stage", choice_name(kDiffStages, first.stage)},
            {"step", first.step},
            {"what", first.what},
            {"options", first.options}};
  if (first.minibatch) json["minibatch"] = *first.minibatch;
  if (first.position) {
    json["position"] = *first.position;
    json["samples"] = first.samples;
  }
  if (first.numbers) json["numbers"] = *first.numbers;
  if (first.element) json["element"] = json_of(*first.element);
  return json;
}

}  // namespace

std::string to_text(const RunsDifference& difference, const DiffRequest& request) {
  const std::string names = fmt::format("{} and {}", request.sides[0].name, request.sides[1].name);
  const std::int64_t equal = difference.equal_steps;
  const std::string steps = fmt::format("{} step{}", equal, equal == 1 ? "" : "s");
  std::string text;
  if (!difference.first) {
    text = fmt::format("{}: {}, the same bits\n", names, steps);
    const std::string options = options_text(difference, [](const auto&) { return true; });
    if (!options.empty()) text += fmt::format("options that made no difference: {}\n", options);
  } else {
    const FirstDifference& first = *difference.first;
    text = first.step == 0 ? fmt::format("{} differ from the beginning\n", names)
           : equal == 0    ? fmt::format("{}: the same bits at the beginning\n", names)
                           : fmt::format("{}: the same bits after {}\n", names, steps);
    const bool of_step = first.step > 0 && first.stage != DiffStage::files;
    text += of_step ? fmt::format("step {} differs {}: {}\n", first.step, words_of(first.stage),
                                  first.what)
                    : first.what + "\n";
    text += reason_text(difference);
  }
  for (const NamedDifference& fact : difference.facts) {
    text += fmt::format("{}: {}\n", fact.name, texts_of(fact));
  }
  return text;
}

std::string growth_text(const RunsDifference& difference) {
  if (difference.distances.empty()) return {};
  const DistancePoint& from = difference.distances.front();
  const DistancePoint& to = difference.distances.back();
  std::string text = fmt::format("distance: {:.3g} after that step", from.between);
  if (to.steps > from.steps) {
    text += fmt::format(", {:.3g} after {} steps", to.between, to.steps);
  }
  if (difference.doubling) {
    text += fmt::format("; while it grows, it doubles in {:.3g} steps", *difference.doubling);
  }
  if (to.seeds) {
    text += fmt::format("\ntwo seeds: {:.3g} after {} steps", *to.seeds, to.steps);
    if (difference.doubling_of_seeds) {
      text += fmt::format("; it doubles in {:.3g} steps", *difference.doubling_of_seeds);
    }
  }
  return text + "\n";
}

std::string to_json(const RunsDifference& difference, const DiffRequest& request) {
  Json json{{"a", request.sides[0].name},
            {"b", request.sides[1].name},
            {"equal", !difference.first},
            {"equal_steps", difference.equal_steps},
            {"options", named(difference.options)},
            {"facts", named(difference.facts)},
            {"first", difference.first ? json_of(*difference.first) : Json()},
            {"distances", Json::array()}};
  for (const DistancePoint& point : difference.distances) {
    Json one{{"steps", point.steps}, {"between", point.between}};
    if (point.seeds) one["seeds"] = *point.seeds;
    json["distances"].push_back(std::move(one));
  }
  if (difference.doubling) json["doubling"] = *difference.doubling;
  if (difference.doubling_of_seeds) json["doubling_of_seeds"] = *difference.doubling_of_seeds;
  return json_text(json, 2) + "\n";
}

}  // namespace rubato
