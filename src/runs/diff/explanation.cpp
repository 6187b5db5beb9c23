// explain() follows the step in the order in which it is computed, and stops at the first stage
// that differs: the trace, the samples of each minibatch, each minibatch's loss and gradient, the
// mean gradient, the rate, the update. Gradients are not kept during the comparison, so both
// trainings are made again with their state before the step. Digests of all minibatches find the
// one to look into, and only that one's gradients are kept and compared element by element. An
// update that differs although everything before it is the same is put down to clipping if options
// of clipping differ, because clipping is a part of the update and leaves nothing to compare.

#include "explanation.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/digest.hpp>

#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

bool is_at(DiffStage stage, std::string_view option) {
  const std::vector<DiffStage>& stages = run_option(option).stages;
  return std::ranges::find(stages, stage) != stages.end();
}

class Explanation {
 public:
  Explanation(const PartedTrainings& parted, std::int64_t step,
              const std::vector<NamedDifference>& options)
      : parted_(parted),
        options_(options),
        a_(*parted.after[0]),
        b_(*parted.after[1]),
        of_a_(a_.step()),
        of_b_(b_.step()) {
    first_.step = step;
  }

  FirstDifference find() {
    const bool found = in_trace() || in_samples() || in_gradient() || in_sum() || in_rate();
    if (!found) in_update();
    first_.options = options_at(first_.stage, options_);
    return std::move(first_);
  }

 private:
  bool in_trace() {
    const std::int64_t minibatch = a_.minibatch_size();
    const auto differ = [&](const char* what, std::int64_t of_a, std::int64_t of_b) {
      if (of_a == of_b) return false;
      at(DiffStage::trace, fmt::format("the step has {} {} and {}", what, of_a, of_b));
      first_.numbers = {static_cast<double>(of_a), static_cast<double>(of_b)};
      return true;
    };
    return differ("the batch", of_a_.plan.batch_size, of_b_.plan.batch_size) ||
           differ("minibatches of", minibatch, b_.minibatch_size()) ||
           differ("the epoch", of_a_.epoch.value() + 1, of_b_.epoch.value() + 1) ||
           differ("before it in its epoch the samples", of_a_.plan.first_sample(minibatch),
                  of_b_.plan.first_sample(minibatch));
  }

  bool in_samples() {
    for (std::int64_t i = 0; i < of_a_.plan.minibatches; ++i) {
      const auto of_a = a_.samples_of(of_a_, i);
      const auto of_b = b_.samples_of(of_b_, i);
      const auto [in_a, in_b] = std::ranges::mismatch(of_a, of_b);
      if (in_a == of_a.end() || in_b == of_b.end()) continue;
      auto sorted_a = of_a;
      auto sorted_b = of_b;
      std::ranges::sort(sorted_a);
      std::ranges::sort(sorted_b);
      first_.minibatch = i + 1;
      first_.position = in_a - of_a.begin() + 1;
      first_.samples = {*in_a, *in_b};
      at(DiffStage::samples,
         fmt::format("minibatch {} of {} has {}: at position {}, sample {} and sample {}", i + 1,
                     of_a_.plan.minibatches,
                     sorted_a == sorted_b ? "the same samples in another order" : "other samples",
                     *first_.position, *in_a, *in_b));
      return true;
    }
    return false;
  }

  // The digest of each minibatch's loss and gradient.
  [[nodiscard]] std::vector<Digest> digests_of(SteppedTraining& training,
                                               const StepRecord& step) const {
    std::vector<Digest> digests;
    training.compute(step, 0, step.plan.minibatches, [&](const MinibatchResult& result) {
      Digest digest = digest_of(std::as_bytes(std::span(&result.loss, 1)));
      for (const NamedArray& array : result.gradient) {
        digest = chained(digest, digest_of(array.bytes()));
      }
      digests.push_back(digest);
    });
    return digests;
  }

  bool in_gradient() {
    const std::array trainings{parted_.make_before(0), parted_.make_before(1)};
    const std::array<const StepRecord*, 2> steps{&of_a_, &of_b_};
    const auto of_a = digests_of(*trainings[0], of_a_);
    const auto of_b = digests_of(*trainings[1], of_b_);
    const std::int64_t i = std::ranges::mismatch(of_a, of_b).in1 - of_a.begin();
    if (i == std::ssize(of_a)) return false;
    std::array<ArrayCopies, 2> gradients;
    std::array<double, 2> losses{};
    for (const std::size_t side : {0U, 1U}) {
      trainings[side]->compute(*steps[side], i, i + 1, [&](const MinibatchResult& result) {
        gradients[side] = ArrayCopies(result.gradient);
        losses[side] = result.loss;
      });
    }
    first_.minibatch = i + 1;
    first_.numbers = losses;
    first_.element =
        first_difference(views_of(gradients[0].arrays()), views_of(gradients[1].arrays()));
    at(DiffStage::gradient,
       fmt::format("minibatch {} of {} has {}, but the losses {:.9g} and {:.9g}{}", i + 1,
                   of_a.size(),
                   trainings[0]->data() == trainings[1]->data()
                       ? "the same samples"
                       : "samples of the same numbers, and the data are not the same",
                   losses[0], losses[1],
                   first_.element ? "; in its gradient, " + to_text(*first_.element) : ""));
    return true;
  }

  bool in_sum() {
    if (a_.gradients().empty() || b_.gradients().empty()) return false;
    first_.element = first_difference(views_of(a_.gradients()), views_of(b_.gradients()));
    if (!first_.element) return false;
    at(DiffStage::sum, "every minibatch has the same gradient, but their mean differs: " +
                           to_text(*first_.element));
    return true;
  }

  bool in_rate() {
    const auto differ = [&](const char* what, double of_a, double of_b) {
      if (of_a == of_b) return false;
      at(DiffStage::rule,
         fmt::format("the mean gradient is the same, but {} {:.9g} and {:.9g}", what, of_a, of_b));
      first_.numbers = {of_a, of_b};
      return true;
    };
    return differ("the step is applied (1) or not (0):", of_a_.applied ? 1 : 0,
                  of_b_.applied ? 1 : 0) ||
           differ("the learning rates are", of_a_.learning_rate, of_b_.learning_rate) ||
           differ("the loss scales are", of_a_.loss_scale.value_or(1),
                  of_b_.loss_scale.value_or(1));
  }

  void in_update() {
    const State after_a = a_.state();
    const State after_b = b_.state();
    first_.element = first_difference(digested_views_of(after_a), digested_views_of(after_b));
    // Without what only one of them remembers.
    if (auto in_both =
            first_difference_in_both(digested_views_of(after_a), digested_views_of(after_b))) {
      first_.element = std::move(in_both);
    }
    std::string where = "in what the optimizer remembers";
    if (first_.element) {
      name_by_parameter(*first_.element, a_.trained(), after_a);
      where = to_text(*first_.element);
    }
    if (!options_at(DiffStage::clipping, options_).empty()) {
      at(DiffStage::clipping,
         "the mean gradient and the rate are the same, but clipping or a transform changes it: "
         "after the update, " +
             where);
    } else {
      at(DiffStage::update,
         "the mean gradient and the rate are the same, but the update differs: " + where);
    }
  }

  void at(DiffStage stage, std::string what) {
    first_.stage = stage;
    first_.what = std::move(what);
  }

  const PartedTrainings& parted_;
  const std::vector<NamedDifference>& options_;
  const SteppedTraining& a_;
  const SteppedTraining& b_;
  const StepRecord& of_a_;
  const StepRecord& of_b_;
  FirstDifference first_;
};

}  // namespace

FirstDifference explain(const PartedTrainings& parted, std::int64_t step,
                        const std::vector<NamedDifference>& options) {
  return Explanation(parted, step, options).find();
}

std::vector<std::string> options_at(DiffStage stage, const std::vector<NamedDifference>& options) {
  std::vector<std::string> names;
  for (const NamedDifference& option : options) {
    if (is_at(stage, option.name)) names.push_back(option.name);
  }
  return names;
}

void name_by_parameter(DifferentElement& element, std::span<const TrainedArray> trained,
                       const State& state) {
  constexpr std::string_view kParameter = "parameter.";
  if (element.array.starts_with(kParameter)) {
    element.array.erase(0, kParameter.size());
    return;
  }
  if (trained.empty() || !state.has(element.array) || element.index.size() != 1) return;
  const StateArray& array = state.array(element.array);
  if (array.shape.front() != static_cast<std::int64_t>(trained.back().end)) return;
  std::int64_t begin = 0;
  for (const TrainedArray& one : trained) {
    const std::int64_t in_one = element.index.front() - begin;
    if (in_one < static_cast<std::int64_t>(one.array.size())) {
      element.array += " of " + one.array.name;
      element.index.assign(one.array.shape.size(), 0);
      std::int64_t left = in_one;
      for (std::size_t i = one.array.shape.size(); i-- > 0;) {
        element.index[i] = left % one.array.shape[i];
        left /= one.array.shape[i];
      }
      return;
    }
    begin = static_cast<std::int64_t>(one.end);
  }
}

}  // namespace rubato
