// All that may happen to a few hosts of a run, in any order, up to some depth: they come, die, stop
// and go on, lose the last message of a step or the handover of a state, are asked to stop, and
// lose the store or a link between two of them. decide() says who takes part, and actions_after()
// what each host then does in its role; between what it sees and what it does, all others may act.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c10d/membership.hpp"
#include "hosts/elastic/roles.hpp"

namespace rubato::hosts_detail {

using namespace hosts_detail;

enum class Phase { absent, forming, connecting, training, stopped, gave_up, dead };

struct Host {
  Phase phase = Phase::absent;
  // It is stopped, or cut off: to the others it is silent.
  bool stalls = false;
  HostNumber own = 0;
  // The generation in which it has its place, and the newest it knows.
  Members place{};
  Members newest{};
  // The steps with which it stands before the others, and those of the state that it has.
  std::int64_t steps = -1;
  std::int64_t state = -1;
  HostPart part{};
  int store = 0;
  bool is_asked_to_stop = false;
  // Whom it has found not to reach, and why the others have left it out.
  Cuts cuts{};
  std::string cut_off{};
  std::optional<Decision> pending{};

  [[nodiscard]] bool acts() const {
    return !stalls && phase != Phase::absent && phase != Phase::dead;
  }
  [[nodiscard]] bool is_over() const {
    return phase == Phase::stopped || phase == Phase::gave_up || phase == Phase::dead ||
           phase == Phase::absent;
  }
  [[nodiscard]] Here here() const {
    return {.standing = steps < 0 ? HostStanding{} : HostStanding{.steps = steps}, .cuts = cuts};
  }
};

// How often what may happen.
struct Budget {
  int deaths = 0;
  int stalls = 0;
  int stops = 0;
  int stores = 0;
  int cuts = 0;
  int handovers = 0;
  int steps = 2;
};

struct World {
  std::vector<Host> hosts{};
  Budget left{};
  // The store.
  int store = 1;
  bool has_run = false;
  std::map<std::int64_t, Turn> turns{};
  std::int64_t newest = 0;
  HostNumber arrivals = 0;
  std::map<std::pair<std::int64_t, HostNumber>, Here> here{};
  std::map<HostNumber, std::string> refusals{};
  std::set<HostNumber> left_ones{};
  // Of the hosts, by their places above, between which there is no link.
  std::set<std::pair<std::size_t, std::size_t>> cuts{};
  // What has been trained by whole groups, and by which of them last.
  std::int64_t committed = -1;
  std::int64_t trained = 0;
  // The steps of the checkpoint in the run's folder.
  std::int64_t saved = -1;

  [[nodiscard]] std::string text() const;
};

// What a world may become in one action. A violation is a text.
class Model {
 public:
  explicit Model(World world) : world_(std::move(world)) {}

  // Does the action of that number. False where there are not so many.
  bool act(int number);
  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const std::string& told() const { return told_; }

  // Nothing happens any more but what hosts do by themselves. False where they get nowhere.
  bool comes_to_rest();

 private:
  bool is_chosen() { return number_-- == 0; }
  void require(bool holds, const std::string& what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  bool lose_link();
  [[nodiscard]] bool may_enter(const Host& host) const;
  bool act_of_host(Host& host);
  bool act_of_group(Host& host);
  void come(Host& host);
  void enter(Host& host);
  void advance(Host& host);
  void look(Host& host, bool patient);
  void follow(Host& host);
  void lose_group(Host& host);
  [[nodiscard]] bool is_cut(const Host& one, const Host& other) const;
  // Of its generation, those that there are; and those of them that it does not reach.
  [[nodiscard]] std::vector<const Host*> members_of(const Host& host) const;
  [[nodiscard]] Cuts cuts_of(const Host& host) const;
  [[nodiscard]] bool lacks_link(const Host& host) const;
  void say_here(Host& host);
  void stop(Host& host);
  void end(Host& host, RunOver over);
  [[nodiscard]] Snapshot snapshot_of(const Host& host, bool patient) const;
  [[nodiscard]] Host* owner(HostNumber number, const Host& of);
  [[nodiscard]] std::vector<Host*> group_of(const Host& host, Phase phase);
  void connect(const std::vector<Host*>& group, bool is_lost);
  void hand_over(const std::vector<Host*>& group, bool is_lost);
  void require_kept(const Host& host);
  void step(const std::vector<Host*>& group);

  World world_;
  int number_ = 0;
  std::string violation_;
  std::string told_;
};

}  // namespace rubato::hosts_detail
