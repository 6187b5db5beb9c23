#include "diff.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "explanation.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/report/metrics_file.hpp"
#include "stepped_training.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::size_t, 2> kSides{0, 1};

// The records of some steps of a run, counted from 1.
std::map<std::int64_t, StepRecord> records_between(const fs::path& run, std::int64_t first,
                                                   std::int64_t last) {
  std::map<std::int64_t, StepRecord> records;
  GrowingLines lines(run / RunFolder::kMetrics);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() != step_schema().name) return;
    StepRecord step = line.record(step_schema());
    const std::int64_t count = step.plan.index.value() + 1;
    if (count >= first && count <= last) records[count] = std::move(step);
  });
  return records;
}

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

// A run takes its steps with these options after its first `begin`: those of the run in the folder,
// from which it may have been forked.
struct Segment {
  fs::path run;
  RunConfiguration configuration;
  std::int64_t begin = 0;
};

// The segments of a run, from that of the oldest run from which it comes to its own. One whose
// folder is gone, and those before it, are missing.
std::vector<Segment> segments_of(const DiffSide& side) {
  std::vector<Segment> segments{{.run = side.run, .configuration = side.configuration}};
  while (!segments.front().configuration.from.empty()) {
    const ForkPoint& from = *segments.front().configuration.from;
    segments.front().begin = from.step;
    if (!is_there(from.run / RunFolder::kConfiguration)) break;
    segments.insert(
        segments.begin(),
        {.run = from.run, .configuration = configuration_of_run(from.run, side.configuration)});
  }
  // A fork of a fork may begin before that one does.
  for (std::size_t i = segments.size() - 1; i-- > 0;) {
    if (segments[i].begin < segments[i + 1].begin) continue;
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return segments;
}

// The number of steps that both have from the same runs.
std::int64_t shared_steps(const std::vector<Segment>& a, const std::vector<Segment>& b) {
  std::int64_t shared = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (fs::weakly_canonical(a[i].run) != fs::weakly_canonical(b[i].run)) break;
    constexpr auto kEver = std::numeric_limits<std::int64_t>::max();
    shared = std::min(i + 1 < a.size() ? a[i + 1].begin : kEver,
                      i + 1 < b.size() ? b[i + 1].begin : kEver);
  }
  return shared;
}

class Comparison {
 public:
  Comparison(const DiffRequest& request, const ReplayParts& parts)
      : request_(request), parts_(parts), of_runs_(!request.sides[0].run.empty()) {}

  RunsDifference find() {
    const auto& [a, b] = request_.sides;
    configurations_ = {a.configuration, b.configuration};
    found_.options = differing_options(a.configuration, b.configuration);
    if (of_runs_) found_.facts = differing_facts(a.run, b.run);
    std::int64_t last = request_.steps;
    if (of_runs_) {
      for (const std::size_t side : kSides) {
        recorded_[side] = recorded_steps(request_.sides[side].run);
      }
      last = std::min(recorded_[0].count, recorded_[1].count);
      for (const std::size_t side : kSides) segments_[side] = segments_of(request_.sides[side]);
      if (!read_digests(last)) {
        found_.equal_steps = last;
        compare_lengths();
        return std::move(found_);
      }
    }
    try {
      repeat();
    } catch (const DigestDiffers& differs) {
      found_.first = FirstDifference{
          .stage = unrepeatable(),
          .step = end_,
          .what = std::string("the first different step cannot be found: ") + differs.what()};
      found_.first->options = options_at(found_.first->stage, found_.options);
    }
    if (!found_.first && of_runs_) compare_lengths();
    return std::move(found_);
  }

 private:
  // Sets equal_ and end_, the last step with equal digests and the first with different ones.
  // Returns false if all `last` steps are known to be equal.
  bool read_digests(std::int64_t last) {
    equal_ = std::min(last, shared_steps(segments_[0], segments_[1]));
    // Digests are compared one after the other: all of them have been read, and a bisection would
    // rely on trainings that never meet again.
    for (const auto& [step, digest] : recorded_[0].digests) {
      const auto other = recorded_[1].digests.find(step);
      if (other == recorded_[1].digests.end() || step <= equal_) continue;
      if (other->second != digest) {
        end_ = step;
        return true;
      }
      equal_ = step;
    }
    end_ = last;
    return equal_ < last && !have_equal_weights();
  }

  // True if both have ended with the same weights, after the same number of steps.
  [[nodiscard]] bool have_equal_weights() const {
    std::array<std::string, 2> weights;
    for (const std::size_t side : kSides) {
      const fs::path file = request_.sides[side].run / RunFolder::kSummary;
      if (!is_there(file)) return false;
      weights[side] = read_summary(file).weights_sha256;
    }
    return recorded_[0].count == recorded_[1].count && weights[0] == weights[1];
  }

  void compare_lengths() {
    const std::array counts{recorded_[0].count, recorded_[1].count};
    if (counts[0] == counts[1]) return;
    found_.first = FirstDifference{
        .stage = DiffStage::length,
        .step = found_.equal_steps + 1,
        .what = fmt::format("they are equal as far as both go, but have {} and {} steps", counts[0],
                            counts[1]),
        .numbers = {{static_cast<double>(counts[0]), static_cast<double>(counts[1])}},
        .options = options_at(DiffStage::length, found_.options)};
  }

  // Repeats the steps after the equal ones in both, until they differ.
  void repeat() {
    found_.equal_steps = equal_;
    for (const std::size_t side : kSides) take_options(side, equal_ + 1);
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
    if (parts_.on_begin) {
      const auto& [a, b] = request_.sides;
      parts_.on_begin(a.name + " and " + b.name, equal_ + 1, end_);
    }
    if (differ_at_begin()) return;
    for (std::int64_t step = equal_ + 1; step <= end_; ++step) {
      const std::array advanced{advance(0, step), advance(1, step)};
      if (!advanced[0] && !advanced[1]) break;
      if (advanced[0] != advanced[1]) return ends_before(step, advanced);
      if (parts_.on_step) parts_.on_step(step);
      if (trainings_[0]->step().digest != trainings_[1]->step().digest) return part(step);
      note_unrepeated(step);
      if (damaged_) return;
      for (const std::size_t side : kSides) before_[side] = trainings_[side]->state();
      found_.equal_steps = step;
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

  // Gives a side the options with which it takes that step. Returns whether these are others than
  // those of the step before.
  bool take_options(std::size_t side, std::int64_t step) {
    bool begins = false;
    for (const Segment& segment : segments_[side]) {
      if (segment.begin >= step && &segment != &segments_[side].front()) break;
      configurations_[side] = segment.configuration;
      begins = segment.begin == step - 1;
    }
    return begins;
  }

  bool advance(std::size_t side, std::int64_t step) {
    if (take_options(side, step) && step > equal_ + 1) {
      const State state = trainings_[side]->state();
      workloads_[side] = parts_.load(repeated(side));
      trainings_[side] =
          std::make_unique<SteppedTraining>(repeated(side), workloads_[side], &state);
    }
    return trainings_[side]->advance();
  }

  // Equal data and models are loaded once, if nothing that decides about them differs.
  std::shared_ptr<const Workload> workload_of(std::size_t side) {
    const bool same = side == 1 && options_at(DiffStage::gradient, found_.options).empty() &&
                      options_at(DiffStage::start, found_.options).empty() &&
                      options_at(DiffStage::trace, found_.options).empty();
    return same ? workloads_[0] : parts_.load(repeated(side));
  }

  std::optional<State> state_at_begin(std::size_t side) {
    const DiffSide& of = request_.sides[side];
    const RunConfiguration run = repeated(side);
    if (of_runs_) return state_after({.run = of.run, .step = equal_}, run, {}, parts_).state;
    if (run.from.empty()) return std::nullopt;
    return state_after(*run.from, run, {}, parts_).state;
  }

  std::unique_ptr<SteppedTraining> make_before(std::size_t side) {
    return std::make_unique<SteppedTraining>(repeated(side), workloads_[side],
                                             before_[side] ? &*before_[side] : nullptr);
  }

  bool differ_at_begin() {
    auto element = first_difference(digested_views_of(*before_[0]), digested_views_of(*before_[1]));
    if (!element) return false;
    name_by_parameter(*element, trainings_[0]->trained(), *before_[0]);
    const bool at_start = equal_ == 0 || !of_runs_;
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

  // One training has ended before the step.
  void ends_before(std::int64_t step, const std::array<bool, 2>& advanced) {
    found_.first =
        FirstDifference{.stage = DiffStage::length,
                        .step = step,
                        .what = fmt::format("{} ends after {} steps, and the other goes on",
                                            request_.sides[advanced[0] ? 1 : 0].name, step - 1),
                        .options = options_at(DiffStage::length, found_.options)};
  }

  // Both have taken the step, and differ after it.
  void part(std::int64_t step) {
    found_.options = differing_options(configurations_[0], configurations_[1]);
    found_.first = explain({.after = {trainings_[0].get(), trainings_[1].get()},
                            .make_before = [&](std::size_t side) { return make_before(side); }},
                           step, found_.options);
    if (of_runs_ && (is_inexact(0) || is_inexact(1))) {
      found_.first->what += " (in this repetition: without --exact, each may have other sums)";
    }
    measure_distances(step);
  }

  // A run whose step has another digest when it is repeated.
  void note_unrepeated(std::int64_t step) {
    if (!of_runs_) return;
    for (const std::size_t side : kSides) {
      const auto& digests = recorded_[side].digests;
      const auto recorded = digests.find(step);
      if (!unrepeated_ && recorded != digests.end() &&
          recorded->second != trainings_[side]->step().digest) {
        unrepeated_ = {side, step};
      }
      find_damage(side, step);
    }
  }

  // Compares a checkpoint of a run with the state that its repeated steps have, unless these cannot
  // have the bits of the run.
  void find_damage(std::size_t side, std::int64_t step) {
    const DiffSide& of = request_.sides[side];
    const fs::path file =
        of.run / RunFolder::kCheckpoints / fmt::format("step-{}.safetensors", step);
    if (damaged_ || !is_there(file) || unrepeatable() != DiffStage::unexplained) return;
    State saved;
    try {
      saved = read_state(file);
    } catch (const Error& error) {
      // The run did not continue from a file that cannot be read.
      parts_.tell(error.what());
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
                            of.name, step, file.filename().string(), to_text(*element)),
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
        what += recorded_difference(step);
    }
    found_.first = FirstDifference{.stage = stage,
                                   .step = step,
                                   .what = std::move(what),
                                   .options = options_at(stage, found_.options)};
    found_.equal_steps = equal_;
  }

  // Says what the records of steps that cannot be repeated tell.
  [[nodiscard]] std::string recorded_difference(std::int64_t last) const {
    const auto of_a = records_between(request_.sides[0].run, equal_ + 1, last);
    const auto of_b = records_between(request_.sides[1].run, equal_ + 1, last);
    for (const auto& entry : of_a) {
      const std::int64_t step = entry.first;
      const StepRecord& a = entry.second;
      const auto found = of_b.find(step);
      if (found == of_b.end()) continue;
      const StepRecord& b = found->second;
      const auto differ = [&](const char* what, double is_a, double is_b) {
        return is_a == is_b ? std::string()
                            : fmt::format(
                                  "the first recorded difference is {} {:.9g} and {:.9g} "
                                  "in step {}, which no option explains",
                                  what, is_a, is_b, step);
      };
      for (const std::string& text : {differ("the batch", static_cast<double>(a.plan.batch_size),
                                             static_cast<double>(b.plan.batch_size)),
                                      differ("the learning rate", a.learning_rate, b.learning_rate),
                                      differ("the loss", a.loss, b.loss)}) {
        if (!text.empty()) return text;
      }
    }
    return "nothing recorded says why; its memory, or a state from which it continued, may have "
           "been damaged";
  }

  // Measures the distance after the first different step and later; both have taken `step`.
  void measure_distances(std::int64_t step) {
    std::int64_t end = of_runs_ ? std::min(recorded_[0].count, recorded_[1].count) : end_;
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
    std::vector<std::int64_t> steps;
    std::vector<double> between;
    std::vector<double> seeds;
    for (const DistancePoint& point : found_.distances) {
      steps.push_back(point.steps);
      between.push_back(point.between);
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
  const ReplayParts& parts_;
  bool of_runs_;
  RunsDifference found_;
  std::array<RecordedSteps, 2> recorded_;
  // Empty if there are no runs.
  std::array<std::vector<Segment>, 2> segments_;
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
