// The search is dynamic programming over the samples trained, forward from the beginning
// (docs/adr/0080). OptimumSearch has no model of a market of its own: it sets the state of a
// ClockedSource::Clock and lets advance() make one decision, so times and money are those of a
// simulation. guess() is a beam search, which decides anew only when the market changes and at
// regular intervals. prove() then searches all schedules: one number of samples after the other,
// and the states of each in the order of time. It drops states from which the bound (OptimumBound)
// shows that no better schedule follows, and states that are no better than a visited one with the
// same likeness() (visit()). Every decision refers to the one before it, so ended() reads the best
// schedule backwards.

#include "optimum.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>

#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "clocked_source.hpp"
#include "optimum_bound.hpp"

namespace rubato {

namespace {

// Relative tolerances. Schedules whose money differs by less than the first count as equal; sums of
// the same numbers in another order differ by less than the second.
constexpr double kSame = 1e-9;
constexpr double kRounding = 1e-12;
// A policy that takes so many times as long as it may is given up.
constexpr double kLate = 10;

using Clock = ClockedSource::Clock;
using PlaceIndex = std::optional<std::size_t>;

// Makes the choices that were found, by the time and the place at which they were.
class SchedulePolicy final : public MarketPolicy {
 public:
  using Choices = std::map<std::pair<double, PlaceIndex>, MarketChoice>;
  explicit SchedulePolicy(Choices choices) : choices_(std::move(choices)) {}

  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    const auto found = choices_.find({view.seconds, view.here});
    // Once all is trained, the clock still looks for a step, which nobody takes.
    return found != choices_.end() ? found->second : MarketChoice{.place = view.places.size() - 1};
  }
  [[nodiscard]] bool needs_on_demand() const override { return false; }
  [[nodiscard]] bool needs_deadline() const override { return false; }

 private:
  Choices choices_;
};

}  // namespace

class OptimumSearch {
 public:
  OptimumSearch(const MakeClock& make, const OptimumOptions& options)
      : make_(make),
        options_(options),
        planner_(options.plan),
        clock_(Clock::of(make(make_market_policy("spot")))),
        deadline_(clock_->options().deadline_seconds),
        kinds_(kinds()),
        needed_(needed_of_epoch()),
        bound_(clock_->markets(), kinds_, end(), market()) {
    find_losses();
    find_moments();
  }

  Optimum optimum() {
    if (kinds_.empty()) return {.proven = true, .least = kNever};
    for (const auto& policy : options_.policies) try_policy(policy);
    // guess() expects the rest of a schedule to cost as much beyond its bound as the best schedule
    // so far costs in all. Its result may not be the best, but bounds the search of prove(), which
    // leaves out only what cannot be better.
    best_.least = bound_.money_without_devices(0, needed({}));
    for (std::int64_t i = 1; i < kMostSearches; ++i) {
      const double before = best_.money;
      if (std::isfinite(before)) {
        beyond_ = best_.least > 0 ? before / best_.least : 1;
      } else {
        beyond_ *= 2;
      }
      guess();
      if (best_.money == before && std::isfinite(before)) break;
    }
    best_.proven = prove();
    return best_;
  }

 private:
  using PendingStep = Clock::PendingStep;

  // The samples trained, and the steps since the last checkpoint that was due.
  struct Node {
    std::int64_t epoch = 0;
    std::int64_t samples = 0;
    std::int64_t steps = 0;

    friend auto operator<=>(const Node&, const Node&) = default;
  };

  // A state of the training in which its policy decides.
  struct State {
    Node node{};
    PendingStep pending{};
    std::vector<std::int64_t> unsaved{};
    std::int64_t steps = 0;
    // The decision that led to it, one of decisions_.
    std::size_t decision = 0;
    // States that follow from each other by waiting have the same number.
    std::size_t chain = 0;
    // The result, if this is the state after the last step.
    double taken_money = 0;
    double taken_seconds = 0;

    [[nodiscard]] double seconds() const { return pending.at.end.seconds; }
    [[nodiscard]] double money() const { return pending.at.end.money; }
  };

  struct Decision {
    std::size_t before = 0;
    double seconds = 0;
    double again = 0;
    // Places, or -1.
    std::int32_t here = -1;
    std::int32_t place = -1;
    // MarketChoice::most, or -1.
    std::int32_t most = -1;
  };

  // A state from which the search has gone on.
  struct Visited {
    double seconds = 0;
    double money = 0;
    double taken_money = 0;
    std::size_t chain = 0;
    // The devices that are offered at its place change then.
    double until = 0;
    // The least money of it and of those before.
    double least = 0;
  };

  // States can be compared if this is equal.
  using Likeness = std::vector<double>;

  [[nodiscard]] const MarketModel& market() const { return clock_->options().cluster.market; }
  [[nodiscard]] const ClusterModel& cluster() const { return clock_->options().cluster; }
  [[nodiscard]] bool loses_all() const { return market().loses == Loses::checkpoint; }

  // The time at which the search ends.
  [[nodiscard]] double end() const {
    if (clock_->batch() != nullptr) {
      throw Error("the optimum does not know a batch policy's decisions; accepted: fixed batches");
    }
    for (const Market& place : clock_->markets()) {
      if (std::isfinite(deadline_) || place.availability().end() != TraceEnd::cycle) continue;
      throw_error(
          "{}: without an end, the least money may take for ever; accepted: with a deadline",
          place.availability().source());
    }
    return deadline_;
  }

  [[nodiscard]] std::vector<StepKind> kinds() const {
    std::int64_t most = 0;
    for (const Market& place : clock_->markets()) {
      for (const AvailabilityChange& change : place.availability().changes()) {
        most = std::max(most, change.devices);
      }
    }
    StepTimes times(cluster());
    std::vector<StepKind> kinds;
    for (std::int64_t devices = 1; devices <= most; ++devices) {
      const std::optional<TraceStep> step = clock_->step_with(devices, {});
      if (!step || !planner_.objection(*step).empty() ||
          (!kinds.empty() && kinds.back().samples == step->batch_size &&
           kinds.back().cores == *step->cores)) {
        continue;
      }
      kinds.push_back({.devices = devices,
                       .samples = step->batch_size,
                       .cores = *step->cores,
                       .seconds = times.step_seconds(
                           minibatches_of(step->batch_size, clock_->options().minibatch_size),
                           *step->cores, step->host_cores)});
    }
    return kinds;
  }

  // With Remainder::drop, the fewest samples from each minibatch of an epoch to its end: a step
  // that does not fit begins the next.
  [[nodiscard]] std::vector<std::int64_t> needed_of_epoch() const {
    if (planner_.carries()) return {};
    const std::int64_t minibatch = options_.plan.minibatch_size;
    const std::int64_t all = planner_.minibatches_per_epoch();
    std::vector<std::int64_t> needed(static_cast<std::size_t>(all) + 1);
    for (std::int64_t i = all; i-- > 0;) {
      std::int64_t fewest = planner_.samples_per_epoch();
      for (const StepKind& kind : kinds_) {
        const std::int64_t after = i + kind.samples / minibatch;
        fewest = std::min(fewest,
                          after > all ? 0 : kind.samples + needed[static_cast<std::size_t>(after)]);
      }
      needed[static_cast<std::size_t>(i)] = fewest;
    }
    return needed;
  }

  // The fewest samples of whole steps until the end of training.
  [[nodiscard]] double needed(const Node& node) const {
    const std::int64_t epochs = options_.plan.epochs - node.epoch;
    if (planner_.carries()) {
      // The last step may be shorter than any of the kinds.
      return std::max(
          0.0, static_cast<double>(epochs) * static_cast<double>(planner_.samples_per_epoch()) -
                   static_cast<double>(node.samples + clock_->options().max_batch));
    }
    const auto minibatch = static_cast<std::size_t>(node.samples / options_.plan.minibatch_size);
    return static_cast<double>(needed_[minibatch]) +
           static_cast<double>(epochs - 1) * static_cast<double>(needed_.front());
  }

  // For each loss of devices, its time, and the money for a second of all that leave from then on.
  void find_losses() {
    std::int64_t most = 0;
    const SourceProgress none;
    for (const Market& place : clock_->markets()) {
      const Availability& devices = place.availability();
      dearest_ = std::max(dearest_, place.price_at(0));
      for (const PriceChange& change : devices.prices()) {
        dearest_ = std::max(dearest_, change.price);
      }
      std::int64_t cores = clock_->cores_with(place.offered(0), none);
      most = std::max(most, cores);
      for (auto at = devices.next_change(0); at && *at <= deadline_;
           at = devices.next_change(*at)) {
        const std::int64_t after = clock_->cores_with(place.offered(*at), none);
        most = std::max(most, after);
        if (after < cores) {
          losses_.emplace_back(*at, static_cast<double>(cores - after) * place.price_at(0));
        }
        cores = after;
      }
    }
    std::ranges::sort(losses_);
    const bool enters_at_once = market().provision_seconds == 0 && market().join_seconds == 0 &&
                                cluster().restart_seconds == 0 && cluster().move_seconds() == 0;
    double sum = enters_at_once ? 0 : static_cast<double>(most) * dearest_;
    for (std::size_t i = losses_.size(); i-- > 0;) {
      if (!enters_at_once) sum += losses_[i].second;
      losses_[i].second = sum / kSecondsOfHour;
    }
    last_exposure_ = enters_at_once ? 0 : static_cast<double>(most) * dearest_ / kSecondsOfHour;
  }

  // When the market changes or announces that it will, and at regular intervals besides.
  void find_moments() {
    constexpr int kMoments = 64;
    double end = deadline_;
    if (!std::isfinite(end)) {
      end = 0;
      for (const Market& place : clock_->markets()) {
        end = std::max(end, place.availability().length());
      }
    }
    for (int i = 1; i < kMoments; ++i) moments_.push_back(end / kMoments * i);
    for (const Market& place : clock_->markets()) {
      for (auto at = place.next_offer(0); at && *at < end; at = place.next_offer(*at)) {
        moments_.insert(moments_.end(), {*at, *at - market().notice_seconds});
      }
    }
    moments_.push_back(kNever);
    std::ranges::sort(moments_);
    moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
  }

  // A bound of the money that a schedule can save for each second by which it is later: devices
  // that leave before they take part are then paid for less long.
  [[nodiscard]] double exposure(double seconds) const {
    const auto next =
        std::ranges::upper_bound(losses_, seconds, {}, &std::pair<double, double>::first);
    return next == losses_.end() ? last_exposure_ : next->second;
  }

  // True if who is earlier can wait for who is later, at no cost but that of exposure().
  [[nodiscard]] bool can_wait() const {
    return market().billing == Billing::steps && !cluster().price.of_trace &&
           market().join_spread == 0 && (!loses_all() || cluster().checkpoint_steps == 1) &&
           (clock_->options().on_idle == OnIdle::pause || cluster().restart_seconds == 0);
  }

  void try_policy(const std::shared_ptr<const MarketPolicy>& policy) {
    try {
      const auto clock = make_(policy);
      // Some would wait for ever.
      Budget budget;
      if (std::isfinite(deadline_)) budget.hours = kLate * deadline_ / kSecondsOfHour;
      const SimulationResult result = simulate(*clock, options_.plan, {}, budget);
      if (result.ended || result.time->seconds > deadline_) return;
      consider(result.time->money, result.time->seconds, [&] { return policy; });
    } catch (const Error&) {
      // Another schedule may still end.
      return;
    }
  }

  template <class Policy>
  void consider(double money, double seconds, const Policy& policy) {
    if (std::tie(money, seconds) >= std::tie(best_.money, best_.seconds)) return;
    best_.money = money;
    best_.seconds = seconds;
    best_.policy = policy();
  }

  // A bound of the money of all schedules that follow from a state; infinite if they miss the
  // deadline.
  [[nodiscard]] double least_money(const State& state) const {
    const double needed = this->needed(state.node);
    if (state.seconds() + bound_.seconds(needed) > deadline_) return kNever;
    const bool enters = !state.pending.at.place || state.pending.at.fleet.groups.empty();
    // The next step may not fit into the last epoch.
    return (needed == 0 ? std::min(state.taken_money, state.money())
                        : state.money() + bound_.money(state.seconds(), needed) +
                              (enters ? bound_.entry_money() : 0)) -
           uncharged_money(state.pending);
  }

  // True if nothing that follows a state can be better than the best schedule so far.
  [[nodiscard]] bool is_hopeless(const State& state) const {
    const double least = least_money(state);
    if (least == kNever) return true;
    const double end = state.seconds() + bound_.seconds(needed(state.node));
    return least >= best_.money * (1 - kSame) && (least > best_.money || end >= best_.seconds);
  }

  // A bound of the money that the provider does not ask for if all devices leave now.
  [[nodiscard]] double uncharged_money(const PendingStep& pending) const {
    if (market().billing != Billing::aws && market().billing != Billing::gcp) return 0;
    double money = 0;
    for (const FleetGroup& group : pending.at.fleet.groups) {
      money += static_cast<double>(group.devices) * dearest_ *
               std::max(0.0, pending.at.end.seconds - group.paid_from) / kSecondsOfHour;
    }
    return money;
  }

  [[nodiscard]] State begin() {
    State state{.pending = clock_->begin(), .chain = ++chains_};
    settle(state);
    return state;
  }

  void count_state() {
    ++best_.states;
    constexpr std::int64_t kOften = 1024;
    if (options_.on_states && best_.states % kOften == 0) options_.on_states(best_.states);
  }

  // Decides anew only after each of moments_, and goes on from as many states after each: the most
  // promising ones.
  void guess() {
    decisions_.assign(1, {});
    std::map<std::size_t, std::vector<State>> waiting;
    const auto put = [&](State state) {
      if (is_hopeless(state)) return;
      const auto next = std::ranges::upper_bound(moments_, state.seconds());
      waiting[static_cast<std::size_t>(next - moments_.begin())].push_back(std::move(state));
    };
    put(begin());
    const std::int64_t limit = best_.states + options_.most_states;
    while (!waiting.empty()) {
      const auto stage = waiting.extract(waiting.begin());
      const double until = moments_[stage.key()];
      const auto stages = static_cast<std::int64_t>(moments_.size() - stage.key());
      const std::int64_t share =
          best_.states + std::max<std::int64_t>(1, (limit - best_.states) / stages);
      for (const State* const state : promising(stage.mapped())) {
        if (best_.states >= share) break;
        for (MarketChoice choice : choices_of(*state)) {
          std::optional<State> next = *state;
          while (next && next->seconds() < until && !is_hopeless(*next)) {
            choice.again = next_moment(next->seconds());
            next = advance(*next, choice);
            count_state();
          }
          if (next) put(*std::move(next));
        }
      }
    }
  }

  // Returns the states that are no worse than others, in turn from groups with about as many
  // samples, because a schedule that takes few devices is behind and yet may lose less in the end.
  // Within a group, the states whose schedules may be expected to cost the least come first.
  [[nodiscard]] std::vector<const State*> promising(const std::vector<State>& states) const {
    constexpr std::int64_t kGroups = 24;
    const std::int64_t part = samples_at({.epoch = options_.plan.epochs}) / kGroups + 1;
    std::map<Likeness, std::vector<const State*>> alike;
    std::map<std::int64_t, std::vector<std::pair<double, const State*>>> parts;
    for (const State& state : states) {
      std::vector<const State*>& like = alike[likeness(state)];
      const bool is_worse = std::ranges::any_of(like, [&](const State* other) {
        return other->seconds() <= state.seconds() && other->money() <= state.money() &&
               samples_at(other->node) >= samples_at(state.node);
      });
      if (is_worse) continue;
      like.push_back(&state);
      parts[samples_at(state.node) / part].emplace_back(
          state.money() + beyond_ * (least_money(state) - state.money()), &state);
    }
    for (auto& [at, of] : parts) {
      std::ranges::stable_sort(of, {}, &std::pair<double, const State*>::first);
    }
    std::vector<const State*> best;
    for (std::size_t i = 0; !parts.empty(); ++i) {
      std::erase_if(parts, [&](const auto& entry) { return i >= entry.second.size(); });
      for (const auto& [at, of] : parts) best.push_back(of[i].second);
    }
    return best;
  }

  [[nodiscard]] std::int64_t samples_at(const Node& node) const {
    return node.epoch * planner_.samples_per_epoch() + node.samples;
  }

  // Searches all schedules. False if the limit of states was reached.
  bool prove() {
    decisions_.assign(1, {});
    std::map<Node, std::vector<State>> waiting;
    const std::int64_t limit = best_.states + options_.most_states;
    waiting[{}].push_back(begin());
    while (!waiting.empty()) {
      auto node = waiting.extract(waiting.begin());
      visited_.clear();
      // In the order of time; of equal times, the cheaper first.
      std::vector<State>& states = node.mapped();
      const auto later = [&](std::size_t a, std::size_t b) {
        return std::tuple(states[a].seconds(), states[a].money(), a) >
               std::tuple(states[b].seconds(), states[b].money(), b);
      };
      std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> queue(later);
      for (std::size_t i = 0; i < states.size(); ++i) queue.push(i);
      while (!queue.empty()) {
        if (best_.states >= limit) return false;
        const State state = std::move(states[queue.top()]);
        queue.pop();
        if (is_hopeless(state) || !visit(state)) continue;
        count_state();
        for (const MarketChoice& choice : choices_of(state)) {
          std::optional<State> next = advance(state, choice);
          if (!next || is_hopeless(*next)) continue;
          const bool is_here = next->node == node.key();
          (is_here ? states : waiting[next->node]).push_back(*std::move(next));
          if (is_here) queue.push(states.size() - 1);
        }
      }
    }
    return true;
  }

  // True if a state has to be gone on with: none that was visited before is as good.
  bool visit(const State& state) {
    const PendingStep& pending = state.pending;
    const PlaceIndex place = pending.at.place;
    const double now = state.seconds();
    std::vector<Visited>& like = visited_[likeness(state)];
    const bool joins = place && pending.at.fleet.coming(now) > 0;
    const double rounding = kRounding * (std::isfinite(best_.money) ? best_.money : state.money());
    for (std::size_t i = like.size(); i-- > 0;) {
      const Visited& other = like[i];
      // All of them were visited at earlier times.
      const double slack = (now - other.seconds) * exposure(other.seconds);
      if (other.least + slack > state.money() + rounding) break;
      if (other.money > state.money() + rounding ||
          other.taken_money > state.taken_money + rounding) {
        continue;
      }
      if (other.seconds == now) return false;
      // It is this one, before it waited.
      if (other.chain == state.chain) continue;
      if (!can_wait() || joins || other.until <= now) continue;
      if (other.money + slack <= state.money() + rounding) return false;
    }
    const std::optional<double> change =
        place ? clock_->markets()[*place].next_offer(now) : std::nullopt;
    like.push_back(
        {.seconds = now,
         .money = state.money(),
         .taken_money = state.taken_money,
         .chain = state.chain,
         .until = change.value_or(kNever),
         .least = like.empty() ? state.money() : std::min(like.back().least, state.money())});
    return true;
  }

  [[nodiscard]] Likeness likeness(const State& state) const {
    const PendingStep& pending = state.pending;
    const Clock::Outcome& at = pending.at;
    const double now = at.end.seconds;
    const bool idle = pending.idle && clock_->options().on_idle == OnIdle::checkpoint;
    Likeness like{at.place ? static_cast<double>(*at.place) : -1,
                  static_cast<double>(at.zone),
                  static_cast<double>(pending.has_moved),
                  static_cast<double>(idle),
                  static_cast<double>(at.saved),
                  static_cast<double>(pending.lost_steps.size()),
                  static_cast<double>(pending.redone),
                  static_cast<double>(at.fleet.joined(now)),
                  static_cast<double>(at.fleet.coming(now))};
    // Devices that have joined differ only in what becomes free if they leave soon.
    const bool all_matter = market().billing != Billing::steps || market().join_spread > 0;
    for (const FleetGroup& group : at.fleet.groups) {
      if (group.joins <= now && !all_matter) continue;
      like.insert(like.end(),
                  {static_cast<double>(group.devices),
                   all_matter ? group.paid_from : std::max(group.paid_from, now), group.joins});
    }
    if (all_matter) like.push_back(static_cast<double>(at.fleet.machines));
    like.insert(like.end(), state.unsaved.begin(), state.unsaved.end());
    return like;
  }

  [[nodiscard]] static StepPlace place_of(const Node& node) {
    return {.step = {}, .epoch = EpochIndex{node.epoch}, .samples = node.samples};
  }

  // The next time at which a loss is announced or the run fails.
  [[nodiscard]] double next_moment(double now) const {
    double next = clock_->markets().front().next_failure(now);
    const double notice = market().notice_seconds;
    if (notice == 0) return next;
    for (const Market& place : clock_->markets()) {
      const std::optional<double> change = place.availability().next_change(now + notice);
      if (change && *change - notice > now) next = std::min(next, *change - notice);
    }
    return next;
  }

  [[nodiscard]] std::vector<MarketChoice> choices_of(const State& state) const {
    const double again = next_moment(state.seconds());
    const PlaceIndex here = state.pending.at.place;
    std::vector<MarketChoice> choices{{.again = again}};
    if (here) choices.push_back({.place = here, .most = 0, .again = again});
    for (std::size_t i = 0; i < clock_->markets().size(); ++i) {
      // Without devices there, it is the same to wait for them elsewhere.
      if (here != i && clock_->markets()[i].offered(state.seconds()) == 0) continue;
      choices.push_back({.place = i, .again = again});
      for (const std::int64_t most : fewer_devices(state, i)) {
        choices.push_back({.place = i, .most = most, .again = again});
      }
    }
    return choices;
  }

  // The numbers of devices of a place that are tried besides all: those that stay after announced
  // losses, and powers of two.
  [[nodiscard]] std::set<std::int64_t> fewer_devices(const State& state, std::size_t place) const {
    const double now = state.seconds();
    const std::int64_t devices = clock_->markets()[place].offered(now);
    const bool joins = market().provision_seconds > 0 || market().join_seconds > 0;
    const std::int64_t joined = state.pending.at.place == place ? state.pending.at.fleet.joined(now)
                                : joins                         ? 0
                                                                : devices;
    // All wait for the first to join.
    if (joined == 0) return {};
    std::set<std::int64_t> fewer = announced(clock_->markets()[place], now, devices);
    for (std::int64_t most = 1; most < joined; most *= 2) {
      if (most >= kinds_.front().devices) fewer.insert(most);
    }
    return fewer;
  }

  // The devices that stay after the losses that are announced.
  [[nodiscard]] std::set<std::int64_t> announced(const Market& place, double now,
                                                 std::int64_t devices) const {
    std::set<std::int64_t> stay;
    // With Loses::checkpoint, the clock does not go on without those that leave either.
    if (loses_all()) return stay;
    const Availability& offers = place.availability();
    for (auto change = offers.next_change(now); change && *change - market().notice_seconds <= now;
         change = offers.next_change(*change)) {
      const std::int64_t left = place.offered(*change);
      if (left > 0 && left < devices) stay.insert(left);
    }
    return stay;
  }

  // The next state in which a policy decides; empty if training has ended, or never does.
  std::optional<State> advance(const State& before, const MarketChoice& choice) {
    State state = before;
    state.pending.choice = choice;
    clock_->put_after(state.steps, state.unsaved);
    if (!state.pending.lost_steps.empty()) state.pending.lost_steps = clock_->unsaved();
    const SourceProgress progress{.step = StepIndex{state.steps},
                                  .epoch = EpochIndex{state.node.epoch},
                                  .samples_left = planner_.samples_left(place_of(state.node))};
    std::optional<Clock::Outcome> outcome;
    try {
      outcome = clock_->advance(state.pending, progress, 1);
    } catch (const Error&) {
      // The availability has ended.
      return std::nullopt;
    }
    if (outcome && !outcome->step) return std::nullopt;
    state.decision = decisions_.size();
    const PlaceIndex here = before.pending.at.place;
    decisions_.push_back({.before = before.decision,
                          .seconds = before.seconds(),
                          .again = choice.again,
                          .here = here ? static_cast<std::int32_t>(*here) : -1,
                          .place = choice.place ? static_cast<std::int32_t>(*choice.place) : -1,
                          .most = static_cast<std::int32_t>(choice.most.value_or(-1))});
    if (outcome) return take(std::move(state), *std::move(outcome));
    const bool waited = state.pending.at.place == here &&
                        state.pending.at.end.restarts == before.pending.at.end.restarts;
    if (!waited) state.chain = ++chains_;
    settle(state);
    return state;
  }

  // Takes a step, as a Walk does.
  std::optional<State> take(State state, Clock::Outcome outcome) {
    Node& node = state.node;
    const TraceStep step = *std::exchange(outcome.step, {});
    // A Walk would throw.
    if (!planner_.objection(step).empty()) return std::nullopt;
    std::optional<StepPlan> plan = planner_.plan(place_of(node), step);
    if (!plan) {
      ++node.epoch;
      node.samples = 0;
      if (node.epoch == options_.plan.epochs) return ended(state);
      plan = planner_.plan(place_of(node), step);
      if (!plan) return std::nullopt;
    }
    if (loses_all()) {
      if (outcome.saved) state.unsaved.clear();
      state.unsaved.push_back(plan->minibatches);
    }
    ++state.steps;
    const std::int64_t every = cluster().checkpoint_steps;
    if (every > 0 && state.steps % every == 0) state.unsaved.clear();
    outcome.saved = false;
    outcome.inputs.clear();
    state.pending = {.at = std::move(outcome)};
    state.taken_money = state.money();
    state.taken_seconds = state.seconds();
    state.chain = ++chains_;
    node.samples += plan->batch_size;
    node.epoch += node.samples / planner_.samples_per_epoch();
    node.samples %= planner_.samples_per_epoch();
    node.steps = every > 0 ? state.steps % every : 0;
    if (node.epoch >= options_.plan.epochs) return ended(state);
    settle(state);
    return state;
  }

  // Applies the changes of the market at that very time, as the clock does before the next
  // decision.
  void settle(State& state) {
    Clock::Outcome& at = state.pending.at;
    if (!at.place) return;
    at.end.money =
        std::max(0.0, at.end.money - clock_->markets()[*at.place].settle(at.fleet, at.end.seconds));
  }

  std::nullopt_t ended(const State& state) {
    if (state.taken_seconds > deadline_) return std::nullopt;
    consider(state.taken_money, state.taken_seconds, [&] {
      SchedulePolicy::Choices choices;
      const auto place = [](std::int32_t index) {
        return index < 0 ? std::nullopt : PlaceIndex(static_cast<std::size_t>(index));
      };
      for (std::size_t i = state.decision; i != 0; i = decisions_[i].before) {
        const Decision& decision = decisions_[i];
        choices.try_emplace(
            {decision.seconds, place(decision.here)},
            MarketChoice{.place = place(decision.place),
                         .most = decision.most < 0 ? std::nullopt
                                                   : std::optional<std::int64_t>(decision.most),
                         .again = decision.again});
      }
      return std::make_shared<SchedulePolicy>(std::move(choices));
    });
    return std::nullopt;
  }

  const MakeClock& make_;
  const OptimumOptions& options_;
  StepPlanner planner_;
  std::unique_ptr<Clock> clock_;
  double deadline_;
  std::vector<StepKind> kinds_;
  std::vector<std::int64_t> needed_;
  OptimumBound bound_;
  std::vector<std::pair<double, double>> losses_;
  double last_exposure_ = 0;
  // guess() expects what is left to cost so many times its bound.
  double beyond_ = 1;
  // The times at which guess() decides, and infinity.
  std::vector<double> moments_;
  // The highest price of a device.
  double dearest_ = 0;

  Optimum best_;
  std::vector<Decision> decisions_;
  std::size_t chains_ = 0;
  // The states of a node from which prove() has gone on.
  std::map<Likeness, std::vector<Visited>> visited_;
};

Optimum find_optimum(const MakeClock& make, const OptimumOptions& options) {
  return OptimumSearch(make, options).optimum();
}

}  // namespace rubato
