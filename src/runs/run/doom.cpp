// The search keeps two bounds: `low` is the last step after which a fork was saved, and `high` the
// first after which none was. first_doomed() begins at the suspected step, moves one of them by
// strides that double until both are known, and then bisects between them. A probe trains forks
// from the run's own state after that step; the state at `low` is kept, because the states of later
// steps are repeated from it. The loss above which a fork counts as lost follows from the course of
// the run, which is read from its metrics.

#include "doom.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/throw_error.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/report/metrics_file.hpp"

namespace rubato {

void TrainingCourse::add_step(double loss) {
  constexpr std::size_t kMean = 10;
  ++steps_;
  if (losses_.empty()) beginning_ = best_ = worst_ = loss;
  if (!std::isfinite(loss) || loss > worst_) {
    worst_ = std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
    suspect_ = best_step_;
  }
  losses_.push_back(loss);
  if (losses_.size() > kMean) losses_.erase(losses_.begin());
  if (losses_.size() == kMean) offer(std::reduce(losses_.begin(), losses_.end()) / kMean);
}

void TrainingCourse::add_test(double loss) {
  test_ = loss;
  offer(loss);
}

double TrainingCourse::end() const {
  const double loss = test_.value_or(std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                                     static_cast<double>(losses_.size()));
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::quiet_NaN();
}

double TrainingCourse::bound() const {
  constexpr double kLearned = 0.9;
  return std::min((best_ + beginning_) / 2, kLearned * beginning_);
}

void TrainingCourse::offer(double loss) {
  if (!std::isfinite(loss) || loss >= best_) return;
  best_ = loss;
  best_step_ = steps_;
}

Share share_of(std::int64_t count, std::int64_t of) {
  // The quantile of the normal distribution for 97.5 %.
  constexpr double kZ = 1.959963984540054;
  const auto n = static_cast<double>(of);
  const double share = static_cast<double>(count) / n;
  const double middle = share + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const double all = 1 + kZ * kZ / n;
  return {.count = count,
          .of = of,
          .low = count == 0 ? 0 : (middle - half) / all,
          .high = count == of ? 1 : (middle + half) / all};
}

Share TriedStep::lost() const {
  return share_of(std::ranges::count(forks, true, &DoomedFork::lost), std::ssize(forks));
}

Share TriedChange::saved() const {
  return share_of(std::ranges::count(forks, false, &DoomedFork::lost), std::ssize(forks));
}

namespace {

struct RecordedCourse {
  TrainingCourse course;
  std::int64_t steps = 0;
  double samples = 0;
  double seconds = 0;
  bool diverged = false;
};

RecordedCourse recorded_course(const std::filesystem::path& run) {
  const std::filesystem::path file = run / RunFolder::kMetrics;
  require_metrics(file);
  RecordedCourse found;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() == epoch_schema().name) {
      const EpochRecord epoch = line.record(epoch_schema());
      if (!epoch.test) return;
      found.course.add_test(epoch.test->loss);
      found.diverged = !std::isfinite(epoch.test->loss);
    }
    if (line.kind() != step_schema().name) return;
    const StepRecord step = line.record(step_schema());
    found.diverged = !step.applied && !step.skipped;
    found.course.add(step);
    if (found.diverged) return;
    found.steps = step.plan.index.value() + 1;
    found.samples += static_cast<double>(step.plan.batch_size);
    found.seconds += step.seconds.wall;
  });
  if (found.steps == 0) {
    throw_error("{} has taken no step; accepted: a run that has", run.string());
  }
  return found;
}

// Follows the loss of a training, and ends it after so many steps in all.
class CourseOfFork final : public Observer {
 public:
  CourseOfFork(std::optional<std::int64_t> last, const ReplayParts& parts)
      : last_(last), parts_(parts) {}

  void on_step(Training& /*training*/, const StepRecord& step) override { course_.add(step); }
  void on_evaluate(Training& /*training*/, const EpochRecord& epoch) override {
    course_.add_test(epoch.test->loss);
  }
  void between_steps(Training& training) override {
    const std::int64_t steps = training.result().steps;
    if (parts_.on_step) parts_.on_step(steps);
    if (last_ && steps >= *last_) training.stop("it has all steps that were asked for");
  }

  [[nodiscard]] const TrainingCourse& course() const { return course_; }

 private:
  std::optional<std::int64_t> last_;
  const ReplayParts& parts_;
  TrainingCourse course_;
};

// Something that is different in forks from the first step at which the run is lost.
struct Change {
  std::string name;
  std::function<void(RunConfiguration&)> configuration = [](RunConfiguration&) {};
  bool clears_memory = false;
};

constexpr std::string_view kMemory = "optimizer.";

// Returns whether an optimizer that begins anew is known to remember only zeros.
bool begins_with_zeros(const RunConfiguration& run) {
  return !run.optimizer->own && facts_of(run.optimizer->method).begins_with_zeros;
}

// The state with an optimizer that has taken no step yet.
State without_memory(const State& state) {
  State anew;
  for (auto [name, array] : state.arrays()) {
    if (name.starts_with(kMemory)) std::ranges::fill(array.bytes, '\0');
    anew.put_array(name, std::move(array));
  }
  for (const auto& [name, text] : state.texts()) anew.put_text(name, text);
  return anew;
}

std::vector<Change> changes_of(const RunConfiguration& run, const State& state) {
  std::vector<Change> changes;
  const double half = run.learning_rate / 2;
  changes.push_back({.name = fmt::format("half the rate, {}", half),
                     .configuration = [half](auto& fork) { fork.learning_rate = half; }});
  if (!run.rule.text().starts_with("root")) {
    changes.push_back(
        {.name = "rule root", .configuration = [](auto& fork) { fork.rule = "root"; }});
  }
  const bool remembers = std::ranges::any_of(state.arrays(), [](const auto& entry) {
    return entry.first.starts_with(kMemory) && !entry.second.bytes.empty();
  });
  if (remembers && begins_with_zeros(run)) {
    changes.push_back({.name = "momentum reset", .clears_memory = true});
  }
  return changes;
}

class Search {
 public:
  Search(const DoomRequest& request, const DoomParts& parts)
      : request_(request),
        parts_(parts),
        run_(recorded_course(request.run)),
        history_(RunHistory::of(request.run, request.configuration)) {
    history_.require_unchanged();
    fork_ = history_.segments().back().configuration;
    fork_.digest = "never";
    workload_ = parts_.replay.load(fork_);
    state_facts();
  }

  DoomResult run() {
    if (parts_.on_begin) parts_.on_begin(result_.facts);
    if (!result_.facts.lost) return std::move(result_);
    const std::int64_t first = first_doomed();
    if (first <= run_.steps) result_.inevitable = first;
    for (auto& [step, forks] : tried_) result_.tried.push_back({step, std::move(forks)});
    if (first <= last_) try_changes(first);
    return std::move(result_);
  }

 private:
  void state_facts() {
    DoomFacts& facts = result_.facts;
    const double end = run_.course.end();
    facts = {.run = request_.run,
             .steps = run_.steps,
             .diverged = run_.diverged,
             .beginning = run_.course.beginning(),
             .best = run_.course.best(),
             .end = std::isfinite(end) ? std::optional(end) : std::nullopt,
             .lost_above = request_.lost_above.value_or(run_.course.bound())};
    facts.lost = is_lost(facts.diverged, end);
    // After its last step a run that was completed has no future that could be another.
    last_ = facts.diverged ? run_.steps : run_.steps - 1;
    const auto all = static_cast<double>(fork_.epochs) * static_cast<double>(workload_->samples());
    const double mean_batch = run_.samples / static_cast<double>(run_.steps);
    const auto to_end =
        std::max<std::int64_t>(run_.steps, facts.diverged ? std::llround(all / mean_batch) : 0);
    const std::int64_t each = std::min(to_end, suspect() + request_.steps.value_or(to_end));
    const std::int64_t reach = std::max(suspect(), last_ - suspect());
    const auto bits = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(reach)));
    facts.most_tried = 2 * bits + 1;
    constexpr std::int64_t kChanges = 3;
    facts.most_steps = (facts.most_tried + kChanges) * request_.orders * each;
    facts.most_seconds =
        static_cast<double>(facts.most_steps) * run_.seconds / static_cast<double>(run_.steps);
  }

  [[nodiscard]] std::int64_t suspect() const { return std::min(run_.course.suspect(), last_); }

  [[nodiscard]] bool is_lost(bool diverged, double loss) const {
    return diverged || !(loss <= result_.facts.lost_above);
  }

  // The first step after which all forks are lost; one beyond the last if there is none.
  std::int64_t first_doomed() {
    std::int64_t low = -1;
    std::int64_t high = last_ + 1;
    const auto is_doomed_at = [&](std::int64_t step) {
      const bool doomed = is_doomed(step);
      if (doomed) {
        high = step;
      } else {
        low = step;
        saved_ = std::move(state_);
      }
      return doomed;
    };
    const bool begins_doomed = is_doomed_at(suspect());
    for (std::int64_t stride = 1; begins_doomed && high > 0; stride *= 2) {
      if (!is_doomed_at(std::max<std::int64_t>(0, high - stride))) break;
    }
    for (std::int64_t stride = 1; !begins_doomed && low < last_; stride *= 2) {
      if (is_doomed_at(std::min(last_, low + stride))) break;
    }
    while (high - low > 1) is_doomed_at(std::midpoint(low, high));
    return high;
  }

  bool is_doomed(std::int64_t step) {
    state_ = state_at(step);
    std::vector<DoomedFork> forks =
        train_forks(state_->state, step, fork_, fmt::format("after step {}", step));
    const bool doomed = std::ranges::all_of(forks, &DoomedFork::lost);
    tried_.emplace(step, std::move(forks));
    return doomed;
  }

  void try_changes(std::int64_t step) {
    const StateOfStep state = state_at(step);
    for (const Change& change : changes_of(fork_, state.state)) {
      RunConfiguration changed = fork_;
      change.configuration(changed);
      result_.changes.push_back(
          {.name = change.name,
           .forks =
               train_forks(change.clears_memory ? without_memory(state.state) : state.state, step,
                           changed, fmt::format("after step {}, {}", step, change.name))});
    }
  }

  std::vector<DoomedFork> train_forks(const State& state, std::int64_t step,
                                      const RunConfiguration& configuration,
                                      const std::string& what) {
    // An epoch is shuffled by the sum of the seed and its number.
    constexpr std::uint64_t kBetweenSeeds = 1'000'000;
    std::vector<DoomedFork> forks;
    for (std::int64_t order = 1; order <= request_.orders; ++order) {
      RunConfiguration fork = configuration;
      fork.seed += static_cast<std::uint64_t>(order) * kBetweenSeeds;
      if (parts_.on_fork) parts_.on_fork(what, order);
      forks.push_back(train(state, step, fork));
    }
    return forks;
  }

  DoomedFork train(const State& state, std::int64_t step, const RunConfiguration& configuration) {
    Run fork(configuration, workload_, RunLocation::fork({}, {.state = state, .records = {}}));
    // Forks from before the accident end as long after it as those from there: otherwise they would
    // be saved by an end before it.
    const auto end =
        request_.steps ? std::optional(std::max(step, suspect()) + *request_.steps) : std::nullopt;
    const auto course = fork.trainer().add_observer<CourseOfFork>(end, parts_.replay);
    const RunOutcome outcome = fork.execute();
    const double loss = course->course().end();
    const bool diverged = outcome.end == RunEnd::diverged;
    return {.seed = configuration.seed,
            .diverged = diverged,
            .loss = std::isfinite(loss) ? std::optional(loss) : std::nullopt,
            .lost = is_lost(diverged, loss)};
  }

  [[nodiscard]] StateOfStep state_at(std::int64_t step) const {
    return {
        .step = step,
        .state = state_after(history_, step, {}, parts_.replay, saved_ ? &*saved_ : nullptr).state};
  }

  const DoomRequest& request_;
  const DoomParts& parts_;
  RecordedCourse run_;
  RunHistory history_;
  // The configuration of forks without a change.
  RunConfiguration fork_;
  std::shared_ptr<const Workload> workload_;
  // The last step from which forks may be trained.
  std::int64_t last_ = 0;
  // The state of the step that is being tried, and that of the last step that was not doomed, from
  // which the steps after it are repeated.
  std::optional<StateOfStep> state_;
  std::optional<StateOfStep> saved_;
  std::map<std::int64_t, std::vector<DoomedFork>> tried_;
  DoomResult result_;
};

}  // namespace

DoomResult doom(const DoomRequest& request, const DoomParts& parts) {
  return Search(request, parts).run();
}

}  // namespace rubato
