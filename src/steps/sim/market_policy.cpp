// Every policy is a class and a row of kPolicies. Policies compare places by the time or the money
// that the rest of the training would need there. `greedy` and `uniform` are those of Z. Wu et al.,
// "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024: both move to
// on-demand devices at the latest when these only just meet the deadline, less MarketView::slack.
// on_demand() assumes that the view has such a place: ClockedSource, which makes the view, checks
// needs_on_demand() and needs_deadline() before.

#include <algorithm>
#include <array>
#include <cmath>

#include <rubato/base/parse.hpp>
#include <rubato/steps/market_policy.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/seconds.hpp"

namespace rubato {

namespace {

using Place = MarketView::Place;

bool trains(const Place& place) {
  return std::isfinite(place.rest_seconds);
}

// The spot market where training would end first; the one where it is, where that is the same.
std::optional<std::size_t> best_spot(const MarketView& view) {
  std::optional<std::size_t> best;
  const auto rest = [&](std::size_t i) { return view.places[i].rest_seconds; };
  for (std::size_t i = 0; i < view.places.size(); ++i) {
    if (view.places[i].on_demand || !trains(view.places[i])) continue;
    if (!best || rest(i) < rest(*best) || (rest(i) == rest(*best) && view.here == i)) best = i;
  }
  return best;
}

std::size_t on_demand(const MarketView& view) {
  const auto found = std::ranges::find_if(view.places, &Place::on_demand);
  return static_cast<std::size_t>(found - view.places.begin());
}

// The latest time at which on-demand devices still meet the deadline.
double last_moment(const MarketView& view) {
  return view.deadline - view.places[on_demand(view)].rest_seconds - view.slack;
}

class SpotPolicy final : public MarketPolicy {
 public:
  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    return {.place = best_spot(view)};
  }
  [[nodiscard]] bool needs_on_demand() const override { return false; }
  [[nodiscard]] bool needs_deadline() const override { return false; }
};

class OnDemandPolicy final : public MarketPolicy {
 public:
  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    return {.place = on_demand(view)};
  }
  [[nodiscard]] bool needs_deadline() const override { return false; }
};

// Spot devices until on-demand ones are only just in time.
class GreedyPolicy final : public MarketPolicy {
 public:
  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    const double last = last_moment(view);
    if (view.here == on_demand(view) || view.seconds >= last) return {.place = on_demand(view)};
    return {.place = best_spot(view), .again = last};
  }
};

// Never behind a progress that is proportional to time (Wu et al. 2024): without spot devices it
// waits while it is ahead; from on-demand devices it goes back once it is ahead by twice the time
// to enter.
class UniformPolicy : public MarketPolicy {
 public:
  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    const double last = last_moment(view);
    const std::optional<std::size_t> spot = chosen_spot(view);
    if (view.here == on_demand(view)) {
      const double enter = spot ? view.places[*spot].enter_seconds : 0;
      const bool ahead = view.share * view.deadline >= view.seconds + 2 * enter;
      return {.place = spot && ahead && view.seconds < last ? spot : on_demand(view)};
    }
    if (view.seconds >= last) return {.place = on_demand(view)};
    if (spot) return {.place = spot};
    const double behind_from = view.share * view.deadline;
    if (view.seconds >= behind_from) return {.place = on_demand(view)};
    return {.again = std::min(last, behind_from)};
  }

 private:
  [[nodiscard]] virtual std::optional<std::size_t> chosen_spot(const MarketView& view) const {
    return best_spot(view);
  }
};

// Like it, but among the spot markets it takes the cheapest for the rest of the training, if each
// loss costs entering again and devices stay as long as they have so far. That is the idea of
// SkyNomad (arXiv 2601.06520), with the simplest prediction.
class LifetimesPolicy final : public UniformPolicy {
 private:
  [[nodiscard]] std::optional<std::size_t> chosen_spot(const MarketView& view) const override {
    std::optional<std::size_t> best;
    const Place& sure = view.places[on_demand(view)];
    double least = cost(sure);
    for (std::size_t i = 0; i < view.places.size(); ++i) {
      const Place& place = view.places[i];
      if (place.on_demand || !trains(place)) continue;
      const double money = cost(place);
      if (money < least || (money == least && view.here == i)) {
        least = money;
        best = i;
      }
    }
    return best;
  }

  // The money for the rest of the training there. Entering again after a loss needs no move.
  static double cost(const Place& place) {
    const double again = place.enter_seconds - place.move_seconds;
    return place.price * static_cast<double>(place.devices) * place.rest_seconds *
               (1 + again / place.mean_stay) / kSecondsOfHour +
           place.move_money;
  }
};

// Few devices, and so small batches, while training is young (arXiv 2602.14208).
class LatePolicy final : public MarketPolicy {
 public:
  LatePolicy(std::int64_t few, double from) : few_(few), from_(from) {}

  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    return {.place = best_spot(view),
            .most = view.share < from_ ? std::optional(few_) : std::nullopt};
  }
  [[nodiscard]] bool needs_on_demand() const override { return false; }
  [[nodiscard]] bool needs_deadline() const override { return false; }

 private:
  std::int64_t few_;
  double from_;
};

template <class Policy>
std::shared_ptr<const MarketPolicy> plain(Spec& /*spec*/) {
  return std::make_shared<Policy>();
}

std::shared_ptr<const MarketPolicy> late(Spec& spec) {
  const std::int64_t few = spec.whole("few", Required{"8"}, 1, kMaxCores);
  return std::make_shared<LatePolicy>(few, spec.real("from", 0.5, kShare));
}

struct MarketPolicyRow {
  std::string_view name;
  std::string_view help;
  std::shared_ptr<const MarketPolicy> (*make)(Spec& spec);
};

constexpr std::array<MarketPolicyRow, 6> kPolicies{
    {{"spot", "spot devices whenever there are enough", plain<SpotPolicy>},
     {"on-demand", "on-demand devices all the time", plain<OnDemandPolicy>},
     {"greedy", "spot devices until on-demand ones are only just in time for the deadline",
      plain<GreedyPolicy>},
     {"uniform",
      "on-demand devices while there are no spot devices and progress is behind time (Wu et al. "
      "2024)",
      plain<UniformPolicy>},
     {"lifetimes",
      "like uniform, with spot devices only where they stay long enough to be cheaper than "
      "on-demand "
      "ones",
      plain<LifetimesPolicy>},
     {"late", "few spot devices until a share of the training is done, then all", late}}};

}  // namespace

std::shared_ptr<const MarketPolicy> make_market_policy(std::string_view text) {
  Spec spec(text);
  std::shared_ptr<const MarketPolicy> policy =
      find_row("market policy", spec.name(), kPolicies).make(spec);
  spec.finish();
  return policy;
}

std::vector<Strategy> market_policies() {
  return strategies_of(
      kPolicies, [](const MarketPolicyRow& row, Spec& spec) { static_cast<void>(row.make(spec)); });
}

}  // namespace rubato
