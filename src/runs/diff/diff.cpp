// The search narrows in three phases. Recorded digests give the last equal and the first different
// step that have one; two SteppedTrainings repeat the steps between them in turns, until their
// digests differ; explain() then finds the first difference within that step. If nothing differs,
// the files in the folders are compared instead: metrics, lengths, checkpoints and weights.
// Configurations without folders have no records, and begin with the second phase. The states
// before the current step are kept, because explain() and the training with another seed begin anew
// from them.

#include "diff.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/file.hpp"
#include "base/core/vectors.hpp"
#include "explanation.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/run/run_history.hpp"
#include "stepped_training.hpp"

namespace rubato {

namespace {

constexpr std::array<std::size_t, 2> kSides{0, 1};

// Twenty numbers of steps from 1 to `last`, in about equal ratios; all of them if there are fewer.
std::vector<std::int64_t> measured_steps(std::int64_t last) {
  constexpr std::int64_t kPoints = 20;
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < std::min(kPoints, last); ++i) {
    const double power =
        std::pow(static_cast<double>(last), static_cast<double>(i) / (kPoints - 1.0));
    steps.push_back(std::max<std::int64_t>(i + 1, std::llround(power)));
  }
  if (!steps.empty()) steps.back() = last;
  return steps;
}

class Comparison {
 public:
  Comparison(const DiffRequest& request, ReplayParts parts)
      : request_(request), parts_(std::move(parts)), of_runs_(!request.sides[0].run.empty()) {
    // A file that has changed is a difference to be named.
    parts_.checks_files = false;
  }

  RunsDifference find() {
    const auto& [a, b] = request_.sides;
    configurations_ = {a.configuration, b.configuration};
    found_.options = differing_options(a.configuration, b.configuration);
    std::int64_t last = request_.steps;
    if (of_runs_) {
      for (const DiffSide& side : request_.sides) {
        histories_.emplace_back(side.run, side.configuration);
      }
      last = last_of_both();
      const bool differs = read_digests(last);
      compare_facts();
      if (!differs) {
        found_.equal_steps = last;
        compare_folders();
        return std::move(found_);
      }
    }
    try {
      repeat();
    } catch (const StepDiffers& differs) {
      found_.first = FirstDifference{
          .stage = unrepeatable(),
          .step = end_,
          .what = std::string("the first different step cannot be found: ") + differs.what()};
      found_.first->options = options_at(found_.first->stage, found_.options);
    }
    if (!found_.first && of_runs_) compare_folders();
    // A memory that only one of them has is the difference if there is no other one.
    if (!found_.first) found_.first = std::move(only_in_one_);
    return std::move(found_);
  }

 private:
  // Sets equal_ and end_, the last step with equal digests and the first with different ones.
  // Returns false if all `last` steps are known to be equal.
  bool read_digests(std::int64_t last) {
    found_.compared.shared = equal_ = std::min(last, histories_[0].shared_with(histories_[1]));
    // Digests are compared one after the other: all of them have been read, and a bisection would
    // rely on trainings that never meet again.
    for (const auto& [step, digest] : recorded(0).digests) {
      const auto other = recorded(1).digests.find(step);
      if (other == recorded(1).digests.end() || step <= equal_) continue;
      if (other->second != digest) {
        end_ = step;
        return true;
      }
      equal_ = step;
      ++found_.compared.digests;
    }
    end_ = last;
    found_.compared.weights = have_equal_weights();
    return equal_ < last && !found_.compared.weights;
  }

  // The steps between the last equal digest and the first different one may have been computed by
  // several processes.
  void compare_facts() {
    for (const std::int64_t step : {equal_ + 1, end_}) {
      if (!found_.facts.empty()) return;
      found_.facts = differing_facts(histories_[0].computed_by(std::min(step, end_)),
                                     histories_[1].computed_by(std::min(step, end_)));
    }
  }

  // True if both have ended with the same weights, after the same number of steps.
  [[nodiscard]] bool have_equal_weights() const {
    const auto& a = histories_[0].summary();
    const auto& b = histories_[1].summary();
    return a && b && recorded(0).count == recorded(1).count &&
           a->weights_sha256 == b->weights_sha256;
  }

  [[nodiscard]] const RecordedSteps& recorded(std::size_t side) const {
    return histories_[side].steps();
  }

  [[nodiscard]] std::int64_t last_of_both() const {
    return std::min(recorded(0).count, recorded(1).count);
  }

  // Compares what the folders of runs of the same bits have besides: whether their files are those
  // that the runs wrote, and how far they go.
  void compare_folders() {
    for (const std::size_t side : kSides) {
      if (find_changed_metrics(side)) return;
    }
    if (recorded(0).count != recorded(1).count) return compare_lengths();
    const auto numbers = recorded_difference(1, recorded(0).count);
    if (numbers && !is_inexact(0) && !is_inexact(1)) {
      found_.first = *numbers;
      found_.first->stage = DiffStage::files;
      return;
    }
    for (const std::size_t side : kSides) find_changed_states(side);
    if (!found_.first) find_changed_weights();
  }

  void find_changed_states(std::size_t side) {
    for (const RunCheckpoint& one : histories_[side].checkpoints()) {
      if (found_.first || one.segment + 1 < histories_[side].segments().size()) return;
      try {
        histories_[side].require_state_of(one, read_state(one.file));
      } catch (const Error& error) {
        found_.first =
            FirstDifference{.stage = DiffStage::files, .step = one.step, .what = error.what()};
      }
    }
  }

  void compare_lengths() {
    const std::array counts{recorded(0).count, recorded(1).count};
    std::string what = fmt::format("they are equal as far as both go, but have {} and {} steps",
                                   counts[0], counts[1]);
    for (const std::size_t side : kSides) {
      if (!histories_[side].summary()) what += "; " + request_.sides[side].name + " has not ended";
    }
    found_.first = FirstDifference{
        .stage = DiffStage::length,
        .step = found_.equal_steps + 1,
        .what = std::move(what),
        .numbers = {{static_cast<double>(counts[0]), static_cast<double>(counts[1])}},
        .options = options_at(DiffStage::length, found_.options)};
  }

  // Compares the metrics of a run that has ended with the checksum in its summary.
  bool find_changed_metrics(std::size_t side) {
    const std::string& what = histories_[side].changed_metrics();
    if (what.empty()) return false;
    const auto numbers = recorded_difference(1, last_of_both());
    found_.first = numbers.value_or(FirstDifference{.step = found_.equal_steps});
    found_.first->stage = DiffStage::files;
    found_.first->what = numbers ? fmt::format("{}; {}", what, numbers->what) : what;
    return true;
  }

  void find_changed_weights() {
    if (!have_equal_weights()) return;
    for (const std::string& name : RunFolder::results()) {
      if (!name.ends_with(".safetensors")) continue;
      const std::array files{request_.sides[0].run / name, request_.sides[1].run / name};
      if (!is_there(files[0]) || !is_there(files[1])) continue;
      FirstDifference changed{.stage = DiffStage::files, .step = found_.equal_steps};
      try {
        const State a = read_state(files[0]);
        const State b = read_state(files[1]);
        changed.element = first_difference(views_of(a), views_of(b));
        if (!changed.element) continue;
        changed.what = fmt::format(
            "{} and {} differ, although both runs had the same weights: one of the files has "
            "changed: {}",
            files[0].string(), files[1].string(), to_text(*changed.element));
      } catch (const Error& error) {
        changed.what = error.what();
      }
      found_.first = std::move(changed);
      return;
    }
  }

  // Repeats the steps after the equal ones in both, until they differ.
  void repeat() {
    found_.equal_steps = equal_;
    if (of_runs_) {
      for (const std::size_t side : kSides) {
        const RunHistory& history = histories_[side];
        configurations_[side] = history.segments()[history.of_step(equal_ + 1)].configuration;
      }
    }
    found_.options = differing_options(configurations_[0], configurations_[1]);
    for (const std::size_t side : kSides) {
      workloads_[side] = workload_of(side);
      before_[side] = state_at_begin(side);
      trainings_[side] = make_before(side);
    }
    if (!of_runs_) {
      before_ = {trainings_[0]->state(), trainings_[1]->state()};
      // They may begin with the state of a run.
      found_.equal_steps = equal_ = trainings_[0]->steps();
      end_ = equal_ + request_.steps;
    }
    if (differ_at_begin()) return;
    if (parts_.on_begin) {
      const auto& [a, b] = request_.sides;
      parts_.on_begin(a.name + " and " + b.name, equal_ + 1, end_);
    }
    for (std::int64_t step = equal_ + 1; step <= end_; ++step) {
      const std::array advanced{advance(0, step), advance(1, step)};
      if (!advanced[0] && !advanced[1]) break;
      if (advanced[0] != advanced[1]) return ends_before(step, advanced);
      if (parts_.on_step) parts_.on_step(step);
      const std::array after{trainings_[0]->state(), trainings_[1]->state()};
      if (are_parted(after)) return part(step);
      if (of_runs_) note_unrepeated(step);
      if (damaged_) return;
      for (const std::size_t side : kSides) before_[side] = after[side];
      found_.equal_steps = step;
      ++found_.compared.repeated;
    }
    if (unrepeated_) explain_unrepeated();
  }

  // The options of a side as steps are repeated with them.
  [[nodiscard]] RunConfiguration repeated(std::size_t side) const {
    RunConfiguration run = configurations_[side];
    run.threads = request_.threads;
    run.kernels = request_.kernels;
    return run;
  }

  // Takes a step of a side, after the forks that begin with it.
  bool advance(std::size_t side, std::int64_t step) {
    if (of_runs_ && step > equal_ + 1) {
      for (const RunSegment& segment : histories_[side].segments()) {
        if (segment.begin != step - 1) continue;
        configurations_[side] = segment.configuration;
        const State state = trainings_[side]->state();
        workloads_[side] = parts_.load(repeated(side));
        trainings_[side] =
            std::make_unique<SteppedTraining>(repeated(side), workloads_[side], &state);
      }
    }
    return trainings_[side]->advance();
  }

  // Whether a step has made them differ. If one of them remembers more than the other, only what
  // both have is compared, of which there is no digest.
  [[nodiscard]] bool are_parted(const std::array<State, 2>& after) const {
    if (trainings_[0]->step().digest == trainings_[1]->step().digest) return false;
    return !only_in_one_ ||
           first_difference_in_both(digested_views_of(after[0]), digested_views_of(after[1]));
  }

  // Equal data and models are loaded once, if nothing that decides about them differs.
  std::shared_ptr<const Workload> workload_of(std::size_t side) {
    // A workload has the weights by which the sampler draws.
    const bool same = side == 1 && configurations_[0].sampler == configurations_[1].sampler &&
                      options_at(DiffStage::gradient, found_.options).empty() &&
                      options_at(DiffStage::start, found_.options).empty() &&
                      options_at(DiffStage::trace, found_.options).empty();
    return same ? workloads_[0] : parts_.load(repeated(side));
  }

  std::optional<State> state_at_begin(std::size_t side) {
    const RunConfiguration run = repeated(side);
    if (!of_runs_ && run.from.empty()) return std::nullopt;
    const RunHistory history =
        of_runs_ ? histories_[side].to_repeat(run) : RunHistory::of(run.from->run, run);
    return state_after(history, of_runs_ ? equal_ : run.from->step, {}, parts_).state;
  }

  std::unique_ptr<SteppedTraining> make_before(std::size_t side) {
    return std::make_unique<SteppedTraining>(repeated(side), workloads_[side],
                                             before_[side] ? &*before_[side] : nullptr);
  }

  bool differ_at_begin() {
    auto element = first_difference(digested_views_of(*before_[0]), digested_views_of(*before_[1]));
    if (!element) return false;
    const bool at_start = equal_ == 0 || !of_runs_;
    if (!element->incomparable.empty() && !element->array.starts_with("parameter.") &&
        !element->array.starts_with("buffer.")) {
      only_in_one_ =
          FirstDifference{.stage = DiffStage::start,
                          .what = fmt::format("they differ in what they remember: {}; what both "
                                              "have is the same",
                                              to_text(*element)),
                          .element = element,
                          .options = options_at(DiffStage::start, found_.options)};
      element =
          first_difference_in_both(digested_views_of(*before_[0]), digested_views_of(*before_[1]));
      // Digests of both tell nothing.
      if (of_runs_) end_ = last_of_both();
      if (!element) return false;
    }
    name_by_parameter(*element, trainings_[0]->trained(), *before_[0]);
    const DiffStage stage = at_start ? DiffStage::start : DiffStage::state;
    found_.first = FirstDifference{
        .stage = stage,
        .step = equal_,
        .what = at_start
                    ? "they begin with different states: " + to_text(*element)
                    : fmt::format("both had the same state after step {}, but what is saved of it "
                                  "differs, so that one of the files has changed: {}",
                                  equal_, to_text(*element)),
        .element = element,
        .options = options_at(stage, found_.options)};
    if (element->incomparable.empty()) measure_distances(0);
    return true;
  }

  void ends_before(std::int64_t step, const std::array<bool, 2>& advanced) {
    found_.first =
        FirstDifference{.stage = DiffStage::length,
                        .step = step,
                        .what = fmt::format("{} ends after {} steps, and the other goes on",
                                            request_.sides[advanced[0] ? 1 : 0].name, step - 1),
                        .options = options_at(DiffStage::length, found_.options)};
  }

  // Both have taken the step, and differ after it. What is taken apart is the step of the runs, if
  // they could be repeated.
  void part(std::int64_t step) {
    for (std::size_t side = 0; side < histories_.size(); ++side) {
      if (unrepeatable() != DiffStage::unexplained) break;
      const std::string differs =
          histories_[side].difference_of(trainings_[side]->step(), /*exact=*/true,
                                         computed_by(workloads_[side]->engine(), request_.kernels));
      if (!differs.empty()) throw StepDiffers(differs);
    }
    found_.options = differing_options(configurations_[0], configurations_[1]);
    found_.first = explain({.after = {trainings_[0].get(), trainings_[1].get()},
                            .make_before = [&](std::size_t side) { return make_before(side); }},
                           step, found_.options);
    if (of_runs_ && (is_inexact(0) || is_inexact(1))) {
      found_.first->what += " (in this repetition: without --exact, each may have other sums)";
    }
    if (only_in_one_) {
      found_.first->what += " (besides, " + to_text(*only_in_one_->element) + ')';
    }
    measure_distances(step);
  }

  // A run whose step has another digest when it is repeated.
  void note_unrepeated(std::int64_t step) {
    for (const std::size_t side : kSides) {
      const auto found = recorded(side).digests.find(step);
      if (!unrepeated_ && found != recorded(side).digests.end() &&
          found->second != trainings_[side]->step().digest) {
        unrepeated_ = {side, step};
      }
      find_damage(side, step);
    }
  }

  // Compares a checkpoint of a run with the state that its repeated steps have, unless these cannot
  // have the bits of the run.
  void find_damage(std::size_t side, std::int64_t step) {
    const std::vector<RunCheckpoint> all = histories_[side].checkpoints();
    const auto one = std::ranges::find(all, step, &RunCheckpoint::step);
    if (damaged_ || one == all.end() || one->segment + 1 < histories_[side].segments().size() ||
        one->begins_fork || unrepeatable() != DiffStage::unexplained) {
      return;
    }
    State saved;
    try {
      saved = read_state(one->file);
    } catch (const Error& error) {
      // The run did not continue from a file that cannot be read.
      parts_.report(error.what());
      return;
    }
    const State repeated = trainings_[side]->state();
    auto element = first_difference(digested_views_of(repeated), digested_views_of(saved));
    if (!element) return;
    damaged_ = true;
    name_by_parameter(*element, trainings_[side]->trained(), repeated);
    found_.first = FirstDifference{
        .stage = DiffStage::state,
        .step = step,
        .what = fmt::format("{} has a state after step {} that its own steps do not give; given, "
                            "and in {}: {}",
                            request_.sides[side].name, step, one->file.filename().string(),
                            to_text(*element)),
        .element = element};
  }

  [[nodiscard]] bool is_inexact(std::size_t side) const {
    return !request_.sides[side].configuration.exact;
  }

  // The stage to which a difference belongs that does not occur when steps are repeated.
  [[nodiscard]] DiffStage unrepeatable() const {
    if (is_inexact(0) || is_inexact(1)) return DiffStage::sum;
    const bool other_kernels =
        !found_.facts.empty() || std::ranges::any_of(found_.options, [](const auto& option) {
          return option.name == "kernels";
        });
    return other_kernels ? DiffStage::kernels : DiffStage::unexplained;
  }

  void explain_unrepeated() {
    const auto [side, step] = *unrepeated_;
    const std::string& name = request_.sides[side].name;
    const std::string& other = request_.sides[1 - side].name;
    const DiffStage stage = unrepeatable();
    std::string what = fmt::format(
        "repeated here from step {}, both have the same bits, but step {} of {} had others: ",
        equal_ + 1, step, name);
    switch (stage) {
      case DiffStage::sum:
        what +=
            "its gradients are summed in an order that depends on time (--exact=false), and each "
            "repetition may have another sum";
        break;
      case DiffStage::kernels:
        what += fmt::format(
            "it was computed by other kernels, libraries or CPU than {}; these alone make the "
            "difference",
            other);
        break;
      default:
        if (!histories_[side].changed_metrics().empty()) {
          what += histories_[side].changed_metrics();
        } else if (const auto numbers = recorded_difference(equal_ + 1, step)) {
          what += numbers->what;
        } else {
          what +=
              "nothing recorded says why; its memory, or a state from which it continued, may have "
              "been damaged";
        }
    }
    found_.first = FirstDifference{.stage = stage,
                                   .step = step,
                                   .what = std::move(what),
                                   .options = options_at(stage, found_.options)};
    found_.equal_steps = equal_;
    found_.compared.repeated = 0;
  }

  [[nodiscard]] std::optional<FirstDifference> recorded_difference(std::int64_t first,
                                                                   std::int64_t last) const {
    for (const auto& [step, a] : recorded(0).numbers) {
      const auto other = recorded(1).numbers.find(step);
      if (step < first || step > last || other == recorded(1).numbers.end()) continue;
      if (const auto found = a.difference_from(other->second)) {
        return FirstDifference{
            .stage = DiffStage::unexplained,
            .step = step,
            .what = fmt::format("the first recorded difference is the {} {} and {} in step {}, "
                                "which no option explains",
                                found->name, found->here, found->there, step),
            .numbers = {{found->here, found->there}}};
      }
    }
    return std::nullopt;
  }

  // Measures the distance after the first different step and later; both have taken `step`.
  void measure_distances(std::int64_t step) {
    std::int64_t end = of_runs_ ? last_of_both() : end_;
    const std::int64_t first = std::max(step, equal_ + 1);
    end = std::min(end, first + request_.distance - 1);
    const std::vector<std::int64_t> wanted = measured_steps(end - first + 1);
    std::unique_ptr<SteppedTraining> seed;
    if (request_.seeds && !wanted.empty()) seed = with_other_seed();
    if (parts_.on_begin && !wanted.empty()) {
      const auto& [a, b] = request_.sides;
      parts_.on_begin(a.name + " and " + b.name, first, end);
    }
    bool ended = false;
    for (std::int64_t now = first, next = 0; now <= end && !ended; ++now) {
      if (now > step) {
        ended = !advance(0, now) || !advance(1, now);
        if (ended) break;
      }
      const bool has_seed = seed && seed->advance();
      if (parts_.on_step) parts_.on_step(now);
      if (now - first + 1 != wanted[static_cast<std::size_t>(next)]) continue;
      ++next;
      DistancePoint point{
          .steps = now - first + 1,
          .between = distance_of(trainings_[0]->parameters(), trainings_[1]->parameters())};
      if (has_seed) point.seeds = distance_of(trainings_[0]->parameters(), seed->parameters());
      found_.distances.push_back(point);
    }
    const auto steps = vector_of(found_.distances, &DistancePoint::steps);
    const auto between = vector_of(found_.distances, &DistancePoint::between);
    std::vector<double> seeds;
    for (const DistancePoint& point : found_.distances) {
      if (point.seeds) seeds.push_back(*point.seeds);
    }
    found_.doubling = doubling_steps(steps, between);
    found_.doubling_of_seeds = doubling_steps(std::span(steps).first(seeds.size()), seeds);
  }

  // The first training from before the step on, with the order of the samples of another seed.
  std::unique_ptr<SteppedTraining> with_other_seed() {
    RunConfiguration run = repeated(0);
    ++run.seed;
    return std::make_unique<SteppedTraining>(run, workloads_[0],
                                             before_[0] ? &*before_[0] : nullptr);
  }

  const DiffRequest& request_;
  ReplayParts parts_;
  bool of_runs_;
  RunsDifference found_;
  // Empty if there are no runs.
  std::vector<RunHistory> histories_;
  // The options of the step that comes next.
  std::array<RunConfiguration, 2> configurations_;
  std::int64_t equal_ = 0;
  std::int64_t end_ = 0;
  std::array<std::shared_ptr<const Workload>, 2> workloads_;
  std::array<std::optional<State>, 2> before_;
  std::array<std::unique_ptr<SteppedTraining>, 2> trainings_;
  // A run, and its first step that has another digest when it is repeated.
  std::optional<std::pair<std::size_t, std::int64_t>> unrepeated_;
  bool damaged_ = false;
  // Set if one of them begins with more memory than the other, such as averages of the weights.
  std::optional<FirstDifference> only_in_one_;
};

}  // namespace

RunsDifference find_difference(const DiffRequest& request, const ReplayParts& parts) {
  return Comparison(request, parts).find();
}

std::optional<double> doubling_steps(std::span<const std::int64_t> steps,
                                     std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const double half = *std::ranges::max_element(values) / 2;
  double count = 0;
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0)) continue;
    const auto x = static_cast<double>(steps[i]);
    const double y = std::log2(values[i]);
    ++count;
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
    if (values[i] >= half) break;
  }
  const double spread = count * sum_xx - sum_x * sum_x;
  if (count < 2 || !(spread > 0)) return std::nullopt;
  const double slope = (count * sum_xy - sum_x * sum_y) / spread;
  return slope > 0 ? std::optional(1 / slope) : std::nullopt;
}

}  // namespace rubato
