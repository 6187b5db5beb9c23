// The text says how far both are equal, then what differs in the step, then why: the options in
// FirstDifference::options are the reason, and the others that differ are listed apart. A
// difference before the first step or in the files has no stage in a step, so its sentence stands
// alone. Facts that differ, such as kernels, come last. JSON leaves out members without a value,
// but always has `first`, which is null if both are equal.

#include "diff_report.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"

namespace rubato {

namespace {

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

// " (100 steps of one run, 1 digest)"; empty if the states alone were compared.
std::string compared_text(const ComparedSteps& compared) {
  std::vector<std::string> texts;
  const auto add = [&](std::int64_t count, std::string_view one, std::string_view several) {
    if (count > 0) texts.push_back(fmt::format("{} {}", count, count == 1 ? one : several));
  };
  add(compared.shared, "step of one run", "steps of one run");
  add(compared.digests, "digest", "digests");
  add(compared.repeated, "repeated step", "repeated steps");
  if (compared.weights) texts.emplace_back("the weights at the end");
  return texts.empty() ? "" : fmt::format(" ({})", fmt::join(texts, ", "));
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

// A number of any value; JSON has null for one that is not finite.
JsonForm<double> any_number() {
  return {{{"type", {"number", "null"}}},
          [](double number) { return nlohmann::ordered_json(number); }};
}

JsonForm<DifferentElement> element_form() {
  using Element = DifferentElement;
  const auto comparable = [](auto member) {
    return [member](const Element& of) {
      return of.incomparable.empty() ? std::optional(of.*member) : std::nullopt;
    };
  };
  return form_of_object<Element>(
      {{"array",
        "the parameter, the buffer or what the optimizer remembers; of a gradient, its parameter",
        &Element::array},
       {"index?", "the index in the array, by dimension", comparable(&Element::index)},
       {"a?", "the number in the first", comparable(&Element::a), any_number()},
       {"b?", "the number in the second", comparable(&Element::b), any_number()},
       {"ulps?", "their distance in units in the last place", &Element::ulps},
       {"elements?", "how many elements of all such arrays differ", comparable(&Element::elements)},
       {"incomparable?", "why the arrays cannot be compared; then there are no numbers",
        text_or_none(&Element::incomparable)}});
}

JsonForm<FirstDifference> first_form() {
  using First = FirstDifference;
  return form_of_object<First>(
      {{"stage", "the part of the training in which they differ first", &First::stage,
        form_of_choice(kDiffStages)},
       {"step", "the step, from 1; 0 is the beginning", &First::step},
       {"what", "the difference in words", &First::what},
       {"options", "the options that differ and can be the reason", &First::options},
       {"minibatch?", "the minibatch of the step, from 1", &First::minibatch},
       {"position?", "the position in the minibatch, from 1", &First::position},
       {"samples?", "the indices of the samples at that position of the first and the second",
        [](const First& first) {
          return first.position ? std::optional(first.samples) : std::nullopt;
        }},
       {"numbers?", "two numbers that differ: batches, losses, learning rates, numbers of steps",
        &First::numbers, any_number()},
       {"element?", "the first element that differs, if numbers of an array do", &First::element,
        element_form()}});
}

// All that --json prints.
struct NamedRunsDifference : RunsDifference {
  std::array<std::string, 2> names{};
};

JsonForm<NamedRunsDifference> difference_form() {
  using All = NamedRunsDifference;
  const JsonForm<NamedDifference> named = form_of_object<NamedDifference>(
      {{"name", "the option, without dashes, or the fact: kernels.cpu, versions.eigen and so on",
        &NamedDifference::name},
       {"a", "its text in the first", [](const NamedDifference& one) { return one.texts[0]; }},
       {"b", "its text in the second", [](const NamedDifference& one) { return one.texts[1]; }}});
  return form_of_object<All>(
      {{"a", "the first: the folder of its run, or good",
        [](const All& all) { return all.names[0]; }},
       {"b", "the second: the folder of its run, or bad",
        [](const All& all) { return all.names[1]; }},
       {"equal", "whether no bit differs", [](const All& all) { return !all.first; }},
       {"equal_steps",
        "the number of steps, from the beginning, after which both have the same bits",
        &All::equal_steps},
       {"compared", "by what these steps were compared", &All::compared,
        form_of_object<ComparedSteps>(
            {{"shared", "the first steps, which both have from the same run",
              &ComparedSteps::shared},
             {"digests", "steps after them with equal digests in the records",
              &ComparedSteps::digests},
             {"repeated", "steps that were repeated in both", &ComparedSteps::repeated},
             {"weights", "whether both have ended after them, with equal weights",
              &ComparedSteps::weights}})},
       {"options", "the options that differ in that step, of those on which the bits depend",
        &All::options, named},
       {"facts",
        "the kernels, the CPU and the versions that differ, by the summaries and checkpoints",
        &All::facts, named},
       {"first", "the first difference; null if there is none", &All::first, first_form()},
       {"distances", "how the distance grows, step by step", &All::distances,
        form_of_object<DistancePoint>(
            {{"steps", "the number of steps from the first that differs, which is 1",
              &DistancePoint::steps},
             {"between", "the norm of the difference of the parameters", &DistancePoint::between,
              any_number()},
             {"seeds?", "the same of two seeds of the first, with --seeds", &DistancePoint::seeds,
              any_number()}})},
       {"doubling?", "the steps in which the distance doubles, while it grows", &All::doubling},
       {"doubling_of_seeds?", "the same of two seeds", &All::doubling_of_seeds}});
}

}  // namespace

std::string to_text(const RunsDifference& difference, const DiffRequest& request) {
  const std::string names = fmt::format("{} and {}", request.sides[0].name, request.sides[1].name);
  const std::int64_t equal = difference.equal_steps;
  const std::string steps = fmt::format("{} step{}", equal, equal == 1 ? "" : "s");
  const std::string compared = compared_text(difference.compared);
  std::string text;
  if (!difference.first) {
    text = fmt::format("{}: {}, the same bits{}\n", names, steps, compared);
    const std::string options = options_text(difference, [](const auto&) { return true; });
    if (!options.empty()) text += fmt::format("options that made no difference: {}\n", options);
  } else {
    const FirstDifference& first = *difference.first;
    text = first.step == 0 ? fmt::format("{} differ from the beginning\n", names)
           : equal == 0    ? fmt::format("{}: the same bits at the beginning\n", names)
                           : fmt::format("{}: the same bits after {}{}\n", names, steps, compared);
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
  const NamedRunsDifference named{difference, {request.sides[0].name, request.sides[1].name}};
  return json_text(difference_form().write(named), 2) + "\n";
}

nlohmann::ordered_json diff_schema() {
  return difference_form().schema;
}

}  // namespace rubato
