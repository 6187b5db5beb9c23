// next() simulates the clock until a step has been completed, through waiting, moves, lost
// attempts, repeated steps and restarts; taken() then adopts the outcome, and nothing else advances
// the source. The simulation is a loop of decisions in advance(): it settles the devices, lets the
// market policy choose a place, makes an attempt at a step, and follows what happens to it.
// attempt_with() knows the future: it finds the first loss or failure before the end of an attempt,
// and the time from which it is known. pass() lets time go by from one event of the market to the
// next, because prices and the devices that are paid for change there, and stops at the budget.
// OptimumSearch drives the same loop one decision at a time. All of this is ClockedSource::Clock;
// ClockedSource, which is public, only asks it.

#include "clocked_source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "clock.hpp"
#include "steps/plan/batch_decision.hpp"

namespace rubato {

namespace {

constexpr std::string_view kDevices = "source.devices";
constexpr std::string_view kUnsaved = "source.unsaved";
constexpr std::string_view kPlace = "source.place";
constexpr std::string_view kZone = "source.zone";
// Attempts at one step; if so many fail, none will ever succeed.
constexpr std::int64_t kMostAttempts = 100'000;
// No availability is defined beyond this time (Availability::at()).
constexpr double kLatestSecond = 3e9;

using Clock = ClockedSource::Clock;

}  // namespace

Clock::Clock(Zones zones, StepOfDevices step_of, ClockOptions options,
             std::unique_ptr<BatchPolicy> batch)
    : step_of_(std::move(step_of)),
      options_(std::move(options)),
      zones_(std::move(zones)),
      batch_(std::move(batch)),
      times_(options_.cluster) {
  if (!options_.market && zones_.several()) options_.market = make_market_policy(kPolicyOfZones);
  const MarketModel& market = options_.cluster.market;
  if (const MarketPolicy* const policy = options_.market.get(); policy != nullptr) {
    if (policy->needs_on_demand() && market.on_demand_devices == 0) {
      throw Refused("market", "there are no on-demand devices", "with on_demand_devices");
    }
    if (policy->needs_deadline() && !std::isfinite(options_.deadline_seconds)) {
      throw Refused("market", "nothing has to end in time", "with deadline_seconds");
    }
  }
  for (const Zone& zone : zones_.all()) {
    markets_.emplace_back(zone.availability, market, options_.cluster.price);
  }
  if (options_.market && market.on_demand_devices > 0) {
    // Nobody takes them away, so their first hour is not free either.
    MarketModel on_demand = market;
    on_demand.false_notice_seconds = 0;
    if (on_demand.billing != Billing::steps) on_demand.billing = Billing::seconds;
    markets_.emplace_back(Availability({{0, market.on_demand_devices}}, kSecondsOfHour,
                                       "on-demand devices", TraceEnd::hold),
                          on_demand, DevicePrice{.constant = market.on_demand_price});
  }
  if (!step_of_) throw Error("the clock has no policy; accepted: ClockOptions::step_of");
  if (options_.minibatch_size < 1 || options_.max_batch < options_.minibatch_size) {
    throw_error(
        "the clock has minibatches of {} samples and steps of at most {}; accepted: at least 1, "
        "and at least a minibatch",
        options_.minibatch_size, options_.max_batch);
  }
}

void Clock::require_time(double seconds, const SourceProgress& progress) const {
  if (seconds <= kLatestSecond) return;
  throw_error("{}: the clock has reached {:.6g} s; accepted: up to {:.6g} s", where(progress.step),
              seconds, kLatestSecond);
}

std::optional<TraceStep> Clock::step_with(std::int64_t devices,
                                          const SourceProgress& progress) const {
  std::optional<TraceStep> step = devices > 0 ? step_of_(devices, progress) : std::nullopt;
  if (!step) return std::nullopt;
  if (!step->cores) step->cores = devices;
  if (step->batch_size >= options_.minibatch_size && *step->cores >= 1) return step;
  throw_error(
      "{}: the policy makes a step of {} samples on {} cores of {} devices; accepted: a minibatch "
      "of {} at least, on one core at least",
      where(progress.step), step->batch_size, *step->cores, devices, options_.minibatch_size);
}

std::int64_t Clock::cores_with(std::int64_t devices, const SourceProgress& progress) const {
  const std::optional<TraceStep> step = step_with(devices, progress);
  return step ? *step->cores : 0;
}

BatchDecision Clock::decide(const TraceStep& offered, const SourceProgress& progress) const {
  if (batch_ == nullptr) return {.step = offered};
  BatchDecision decision = checked_decision(*batch_, offered, progress, where(progress.step));
  if (decision.step.batch_size % options_.minibatch_size == 0) return decision;
  throw_error(
      "{}: the policy {} decides on {} samples; accepted: a multiple of the minibatch size, {}",
      where(progress.step), batch_->name(), decision.step.batch_size, options_.minibatch_size);
}

std::optional<Clock::Attempt> Clock::attempt_with(std::int64_t devices, const Outcome& at,
                                                  std::optional<std::int64_t> minibatches,
                                                  const SourceProgress& progress) const {
  const std::optional<TraceStep> offered = step_with(devices, progress);
  if (!offered) return std::nullopt;
  const Market& market = markets_[*at.place];
  const ClusterModel& cluster = times_.model();
  const double notice = cluster.market.notice_seconds;
  const double begin = at.end.seconds;
  Attempt attempt{
      .decision = minibatches ? BatchDecision{.step = *offered} : decide(*offered, progress),
      .devices = devices};
  const TraceStep& step = attempt.decision.step;
  attempt.cores = *step.cores;
  const std::int64_t size =
      minibatches ? *minibatches
                  : minibatches_of(shortened(step, progress).batch_size, options_.minibatch_size);
  attempt.step_seconds = times_.step_seconds(size, attempt.cores, step.host_cores);
  attempt.seconds = minibatches
                        ? attempt.step_seconds
                        : seconds_of_step(times_, size, attempt.cores, step.host_cores, steps_);
  const Availability& availability = market.availability();
  double end = begin + attempt.seconds;
  // One round of a cycle shows all numbers of devices that can follow.
  if (availability.end() == TraceEnd::cycle) end = std::min(end, begin + availability.length());
  end = std::min(end, kLatestSecond);
  for (std::optional<double> change = availability.next_change(begin); change && *change < end;
       change = availability.next_change(*change)) {
    // The last to come leave first, so these stay as long as there are as many.
    attempt.staying = std::min(devices, market.offered(*change));
    if (cores_with(attempt.staying, progress) < attempt.cores) {
      attempt.loss = change;
      attempt.known = std::max(begin, *change - notice);
      break;
    }
  }
  // Notices that no loss follows matter where they change what is done: with a checkpoint to begin
  // from, it has to fit and save something.
  const auto first_loss = [&] { return attempt.loss.value_or(begin + attempt.seconds); };
  for (double at_notice = market.next_false_notice(begin - notice);
       at_notice + notice < std::min(first_loss(), kLatestSecond);
       at_notice = market.next_false_notice(at_notice)) {
    if (at_notice + notice <= begin) continue;
    const double known = std::max(begin, at_notice);
    // Each is of the machine that came last.
    const std::int64_t staying = std::min(devices, market.offered(known) - cluster.market.machine);
    const bool saves = !minibatches && !at.saved && !unsaved_.empty() &&
                       known + cluster.checkpoint_seconds <= at_notice + notice;
    if (cluster.market.loses == Loses::checkpoint ? saves
                                                  : cores_with(staying, progress) < attempt.cores) {
      attempt.loss = at_notice + notice;
      attempt.known = known;
      attempt.staying = staying;
      attempt.is_false = true;
    }
  }
  // Nobody announces a failure.
  if (const double failure = market.next_failure(begin); failure < first_loss()) {
    attempt.loss = attempt.known = failure;
    attempt.is_false = false;
  }
  return attempt;
}

MarketView Clock::view_of(const Outcome& at, const SourceProgress& progress) const {
  if (!progress.all_samples) {
    throw Error("a market policy needs the samples of the training; accepted: a Walk's progress");
  }
  const double now = at.end.seconds;
  const ClusterModel& cluster = times_.model();
  const MarketModel& model = cluster.market;
  const std::int64_t left = std::max<std::int64_t>(0, *progress.all_samples - progress.samples);
  MarketView view{
      .seconds = now,
      .deadline = options_.deadline_seconds,
      .share = 1 - static_cast<double>(left) / static_cast<double>(*progress.all_samples),
      .here = at.place};
  double longest = 0;
  double repeated = 0;
  for (std::size_t i = 0; i < markets_.size(); ++i) {
    const Market& market = markets_[i];
    MarketView::Place& place = view.places.emplace_back(
        MarketView::Place{.on_demand = i >= zones_.all().size(),
                          .devices = market.offered(now),
                          .price = market.price_at(now),
                          .enter_seconds = model.provision_seconds + model.join_seconds,
                          .mean_stay = market.mean_stay(now)});
    if (at.place == i && !at.fleet.groups.empty()) {
      place.enter_seconds = std::max(0.0, at.fleet.groups.front().joins - now);
    }
    if (moves_state(at, i)) {
      place.move_seconds = cluster.move_seconds() + cluster.restart_seconds;
      place.move_money = cluster.move_money();
      place.enter_seconds += place.move_seconds;
    }
    const std::optional<TraceStep> step = step_with(place.devices, progress);
    if (!step) continue;
    const auto seconds_of = [&](std::int64_t minibatches) {
      return times_.step_seconds(minibatches, *step->cores, step->host_cores);
    };
    const double seconds = seconds_of(minibatches_of(step->batch_size, options_.minibatch_size));
    longest = std::max(longest, seconds);
    const std::int64_t steps = (left + step->batch_size - 1) / step->batch_size;
    place.rest_seconds =
        place.enter_seconds + static_cast<double>(steps) * seconds +
        static_cast<double>(checkpoints_in(cluster, steps_, steps)) * cluster.checkpoint_seconds;
    if (place.on_demand && model.loses == Loses::checkpoint && !at.saved && !unsaved_.empty()) {
      repeated = static_cast<double>(unsaved_.size()) * seconds_of(std::ranges::max(unsaved_));
    }
  }
  // A step that is lost, its restart, that of a move, and what is repeated then.
  view.slack = longest + cluster.checkpoint_seconds + 2 * cluster.restart_seconds + repeated;
  if (zones_.several()) view.slack += cluster.move_seconds();
  return view;
}

Clock::Decided Clock::decide_place(Outcome& at, const std::optional<MarketChoice>& choice,
                                   const SourceProgress& progress) const {
  if (!options_.market) return {};
  Decided decided{.choice = choice ? *choice : options_.market->choose(view_of(at, progress))};
  if (decided.choice.place == at.place) return decided;
  if (decided.choice.place && *decided.choice.place >= markets_.size()) {
    throw_error("{}: the market policy goes to place {} of {}; accepted: one that there is",
                where(progress.step), *decided.choice.place + 1, markets_.size());
  }
  at.place = decided.choice.place;
  at.fleet = {.since = at.end.seconds};
  decided.moved = at.place.has_value();
  if (at.place) static_cast<void>(markets_[*at.place].settle(at.fleet, at.end.seconds));
  return decided;
}

std::optional<double> Clock::next_event(const Outcome& at, double again) const {
  const double now = at.end.seconds;
  std::optional<double> next =
      at.place ? markets_[*at.place].next_event(at.fleet, now) : std::nullopt;
  const auto consider = [&](std::optional<double> event) {
    if (event && std::isfinite(*event) && *event > now && (!next || *event < *next)) next = event;
  };
  if (options_.market) {
    for (const Market& market : markets_) consider(market.next_offer(now));
    consider(again);
  }
  return next;
}

bool Clock::pass(Outcome& at, double end, std::int64_t cores, const Limit& limit,
                 const SourceProgress& progress) const {
  ClockTime& time = at.end;
  const ClusterModel& cluster = times_.model();
  double now = time.seconds;
  double core_seconds = 0;
  double money = 0;
  bool reached = false;
  while (now < end && !reached) {
    require_time(now, progress);
    if (at.place) money -= markets_[*at.place].settle(at.fleet, now);
    const std::int64_t joined = at.fleet.joined(now);
    cores = std::min(cores, cores_with(joined, progress));
    const std::int64_t joining = at.fleet.joining(now);
    std::int64_t paid = cores;
    if (cluster.market.billing != Billing::steps) {
      paid = joined + joining;
    } else if (joining > 0) {
      paid += cores_with(joined + joining, progress) - cores_with(joined, progress);
    }
    const auto of_paid = static_cast<double>(paid);
    const double price = at.place ? markets_[*at.place].price_at(now) : 0;
    double last = limit.seconds;
    if (paid > 0) {
      last =
          std::min(last, now + (limit.core_seconds - time.core_seconds - core_seconds) / of_paid);
      if (price > 0) {
        last = std::min(
            last, now + (limit.money - time.money - money) * kSecondsOfHour / (of_paid * price));
      }
    }
    double until = end;
    if (at.place) {
      until = std::min(end, markets_[*at.place].next_event(at.fleet, now).value_or(end));
    }
    reached = last <= until;
    if (reached) until = std::max(now, last);
    core_seconds += (until - now) * of_paid;
    money += (until - now) * of_paid * price / kSecondsOfHour;
    now = until;
  }
  spend_core_seconds(time, now - time.seconds, core_seconds, cluster,
                     is_plain() ? std::nullopt : std::optional(money));
  // The time is set exactly, because the availability is read at it.
  time.seconds = now;
  time.money = std::max(0.0, time.money);
  return !reached;
}

Clock::Limit Clock::limit_of(const Budget& budget) const {
  Limit limit;
  if (!reached(budget, {.time = time_}).empty()) return limit;
  if (const auto seconds = budget.seconds()) limit.seconds = *seconds;
  if (!budget.money) return limit;
  if (is_plain()) {
    if (!times_.model().price.costs()) return limit;
    limit.core_seconds = *budget.money / times_.model().price.constant * kSecondsOfHour;
  } else {
    limit.money = *budget.money;
  }
  return limit;
}

Clock::Outcome Clock::ended(const ClockTime& time, const SourceProgress& progress) const {
  if (zones_.end() != TraceEnd::error) return {.end = time};
  throw_error(
      "{}: the availability ends at {:.6g} s, and there is more to train; accepted: a longer one, "
      "or --on-trace-end hold, cycle or stop",
      where(progress.step), zones_.length());
}

Clock::PendingStep Clock::begin() const {
  return {.at = {.end = time_, .fleet = fleet_, .place = place_, .zone = zone_}};
}

const Clock::Outcome& Clock::simulate(const SourceProgress& progress) {
  PendingStep pending = begin();
  std::optional<Outcome> outcome = advance(pending, progress, kMostAttempts);
  if (!outcome) {
    throw_error(
        "{}: no step has ended in {} attempts until {:.6g} s: each lasts longer than its cores "
        "stay; accepted: shorter steps",
        where(progress.step), kMostAttempts, pending.at.end.seconds);
  }
  return ahead_.emplace(*std::move(outcome));
}

std::optional<Clock::Outcome> Clock::advance(PendingStep& pending, const SourceProgress& progress,
                                             std::int64_t most_decisions) const {
  const ClusterModel& cluster = times_.model();
  const bool loses_all = cluster.market.loses == Loses::checkpoint;
  const Limit limit = limit_of(progress.budget);
  Outcome& at = pending.at;
  ClockTime& time = at.end;
  // Spends time of one kind; true if the limit is reached in it.
  const auto is_last = [&](double end, std::int64_t cores, double ClockTime::*kind) {
    const double begin = time.seconds;
    const bool last = !pass(at, end, cores, limit, progress);
    time.*kind += time.seconds - begin;
    return last;
  };
  const auto spent = [&] {
    // The budget is shown exactly, without rounding errors.
    if (time.seconds < limit.seconds) time.money = progress.budget.money.value_or(time.money);
    at.cause = SourceEnd::Cause::budget;
    return at;
  };
  const auto lose_steps = [&] {
    if (loses_all && !at.saved) pending.lost_steps = unsaved_;
    pending.redone = 0;
  };
  for (std::int64_t tries = 0; tries < most_decisions; ++tries) {
    require_time(time.seconds, progress);
    const double now = time.seconds;
    if (at.place) {
      // Rounding must not leave less than nothing.
      time.money = std::max(0.0, time.money - markets_[*at.place].settle(at.fleet, now));
    }
    const Decided decided = decide_place(at, pending.choice, progress);
    const MarketChoice& choice = decided.choice;
    pending.has_moved = pending.has_moved || decided.moved;
    const std::int64_t joined =
        std::min(at.fleet.joined(now), choice.most.value_or(at.fleet.joined(now)));
    const bool repeats = pending.redone < pending.lost_steps.size();
    const auto attempt_of = [&](std::int64_t devices) {
      return attempt_with(
          devices, at, repeats ? std::optional(pending.lost_steps[pending.redone]) : std::nullopt,
          progress);
    };
    std::optional<Attempt> attempt = attempt_of(joined);
    std::optional<double> proves_false;
    // Without a checkpoint to begin from, those that stay can go on without the others.
    while (!loses_all && attempt && attempt->loss && attempt->known <= now) {
      if (attempt->is_false) proves_false = attempt->loss;
      attempt = attempt_of(attempt->staying);
    }
    if (!attempt) {
      std::optional<double> event = next_event(at, choice.again);
      // Too few would stay, until it turns out that all do.
      if (proves_false) event = std::min(*proves_false, event.value_or(*proves_false));
      // With too few devices for good, the clock runs on until the budget of hours is used up.
      const bool waits =
          event || (zones_.all().front().availability.endless() && std::isfinite(limit.seconds));
      if (!waits) return ended(time, progress);
      if (joined == 0 && !pending.has_moved) lose_steps();
      const bool joins = cores_with(joined, progress) == 0 &&
                         cores_with(joined + at.fleet.coming(now), progress) > 0;
      if (is_last(event.value_or(limit.seconds), 0,
                  joins ? &ClockTime::join_seconds : &ClockTime::idle_seconds)) {
        return spent();
      }
      pending.idle = pending.idle || !joins;
      continue;
    }
    const std::int64_t cores = attempt->cores;
    const auto restart = [&](double move_seconds = 0) {
      ++time.restarts;
      return is_last(time.seconds + cluster.restart_seconds + move_seconds, cores,
                     &ClockTime::restart_seconds);
    };
    const bool was_idle =
        std::exchange(pending.idle, false) && options_.on_idle == OnIdle::checkpoint;
    if ((std::exchange(pending.has_moved, false) || was_idle) && steps_ > 0) {
      const bool moves = moves_state(at, *at.place);
      if (moves) {
        at.zone = *at.place;
        time.money += cluster.move_money();
        if (time.money >= limit.money) return spent();
      }
      if (restart(moves ? cluster.move_seconds() : 0)) return spent();
      continue;
    }
    if (!attempt->loss) {
      if (repeats) {
        if (is_last(now + attempt->seconds, cores, &ClockTime::redone_seconds)) return spent();
        ++pending.redone;
        continue;
      }
      if (is_plain()) {
        spend(time, attempt->seconds, cores, cluster);
      } else {
        // The step that reaches a budget is taken.
        static_cast<void>(pass(at, now + attempt->seconds, cores, {}, progress));
      }
      time.checkpoint_seconds += attempt->seconds - attempt->step_seconds;
      if (*at.place < zones_.all().size()) at.zone = *at.place;
      at.step = attempt->decision.step;
      at.seconds = attempt->step_seconds;
      at.inputs = std::move(attempt->decision.inputs);
      return at;
    }
    const double loss = *attempt->loss;
    const double written = attempt->known + cluster.checkpoint_seconds;
    if (is_last(attempt->known, cores, &ClockTime::lost_seconds)) return spent();
    if (loses_all) {
      if (attempt->known < loss && written <= loss) {
        if (is_last(written, cores, &ClockTime::checkpoint_seconds)) return spent();
        // Repeated steps are saved with it only once all of them have been repeated.
        if (!repeats) {
          at.saved = true;
          pending.lost_steps = {};
        }
      }
      if (attempt->is_false) continue;
      if (is_last(loss, cores, &ClockTime::lost_seconds)) return spent();
    }
    lose_steps();
    if (restart()) return spent();
  }
  return std::nullopt;
}

const Clock::Outcome& Clock::look_ahead(const SourceProgress& progress) {
  return ahead_ ? *ahead_ : simulate(progress);
}

std::string Clock::where(StepIndex step) const {
  return fmt::format("{} at {:.6g} s, step {} of the run", zones_.source(), time_.seconds,
                     step.value() + 1);
}

std::string Clock::binding() const {
  return fmt::format("policy {} idle {} minibatch {} {}", options_.policy,
                     static_cast<int>(options_.on_idle), options_.minibatch_size,
                     text_of(options_.cluster));
}

std::string Clock::devices_until(double end) const {
  Sha256 sha;
  for (const auto& [name, availability] : zones_.all()) {
    if (zones_.several()) sha.add("zone\n");
    for (const AvailabilityChange& change : availability.changes()) {
      if (change.seconds > end) break;
      sha.add(fmt::format("{} {}\n", change.seconds, change.devices));
    }
    // The devices after the length follow from it and from the kind of end.
    if (availability.length() <= end) {
      sha.add(fmt::format("{} {}\n", availability.length(),
                          choice_name(kTraceEnds, availability.end())));
    }
  }
  return sha.hex();
}

void Clock::take(const TraceStep& step, const SourceProgress& after) {
  if (!ahead_ || !ahead_->step)
    throw Error("taken() was called without next(); accepted: after it");
  if (batch_ != nullptr) {
    batch_->observe({.step = step, .after = after, .seconds = ahead_->seconds});
  }
  time_ = ahead_->end;
  fleet_ = std::move(ahead_->fleet);
  place_ = ahead_->place;
  zone_ = ahead_->zone;
  const ClusterModel& cluster = times_.model();
  if (cluster.market.loses == Loses::checkpoint) {
    if (ahead_->saved) unsaved_.clear();
    unsaved_.push_back(minibatches_of(step.batch_size, options_.minibatch_size));
  }
  ahead_.reset();
  ++steps_;
  if (cluster.checkpoint_steps > 0 && steps_ % cluster.checkpoint_steps == 0) unsaved_.clear();
}

void Clock::visit_state(StateVisitor& state, std::int64_t steps) {
  visit_clock(state, binding(), time_);
  const std::string devices = devices_until(time_.seconds);
  if (state.bound(kDevices, devices) != devices && !state.forks()) {
    throw_error(
        "{}: the devices until {:.6g} s are not those that the state has used; accepted: the same",
        zones_.source(), time_.seconds);
  }
  if (options_.cluster.market.loses == Loses::checkpoint && state.has(kUnsaved, /*saved=*/true)) {
    state.list(kUnsaved, unsaved_);
  }
  if (options_.market && state.has(kPlace, /*saved=*/true)) {
    // The place, or -1, and the time since when.
    std::array<double, 2> place{place_ ? static_cast<double>(*place_) : -1, fleet_.since};
    state.values(kPlace, std::span<double>(place));
    if (state.loading()) {
      state.require(place[0] >= -1 && place[0] < static_cast<double>(markets_.size()) &&
                        place[1] >= 0 && place[1] <= time_.seconds,
                    "the market that it trains on");
      place_ = place[0] < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(place[0]));
      fleet_.since = place[1];
    }
  }
  if (zones_.several() && state.has(kZone, /*saved=*/true)) {
    std::array<std::int64_t, 1> zone{static_cast<std::int64_t>(zone_)};
    state.values(kZone, std::span<std::int64_t>(zone));
    if (state.loading()) {
      state.require(zone[0] >= 0 && zone[0] < std::ssize(zones_.all()), "the zone of the state");
      zone_ = static_cast<std::size_t>(zone[0]);
    }
  }
  visit_policy(state, batch_.get());
  if (!state.loading()) return;
  steps_ = steps;
  ahead_.reset();
  fleet_ = {.since = fleet_.since};
  // The changes at that very time are still to come.
  if (place_ && time_.seconds > 0) {
    static_cast<void>(markets_[*place_].settle(fleet_, std::nexttoward(time_.seconds, 0)));
  }
}

ClockedSource::ClockedSource(Zones zones, StepOfDevices step_of, ClockOptions options,
                             std::unique_ptr<BatchPolicy> batch)
    : clock_(std::make_unique<Clock>(std::move(zones), std::move(step_of), std::move(options),
                                     std::move(batch))) {}
ClockedSource::~ClockedSource() = default;

std::optional<TraceStep> ClockedSource::next(const SourceProgress& progress) const {
  return clock_->simulate(progress).step;
}

std::optional<ClockTime> ClockedSource::time_after(const SourceProgress& progress) const {
  const Clock::Outcome& ahead = clock_->look_ahead(progress);
  if (!ahead.step) return std::nullopt;
  return ahead.end;
}

SourceEnd ClockedSource::end(const SourceProgress& progress) const {
  const Clock::Outcome& ahead = clock_->look_ahead(progress);
  return {.cause = ahead.cause, .time = ahead.end};
}

std::vector<NamedNumber> ClockedSource::decision_inputs(const SourceProgress& progress) const {
  if (clock_->batch() == nullptr) return {};
  return clock_->look_ahead(progress).inputs;
}

std::int64_t ClockedSource::max_batch() const {
  const std::int64_t offered = clock_->options().max_batch;
  return clock_->batch() == nullptr ? offered : clock_->batch()->max_batch(offered);
}

bool ClockedSource::needs_noise_scale() const {
  return clock_->options().needs_noise_scale ||
         (clock_->batch() != nullptr && clock_->batch()->needs_noise_scale());
}

void ClockedSource::taken(const TraceStep& step, const SourceProgress& after) {
  clock_->take(step, after);
}
std::string ClockedSource::where(StepIndex step) const {
  return clock_->where(step);
}
void ClockedSource::visit_state(StateVisitor& state, std::int64_t steps) {
  clock_->visit_state(state, steps);
}
const ClockTime& ClockedSource::time() const {
  return clock_->time();
}

}  // namespace rubato
