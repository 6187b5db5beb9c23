#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/c10d/links/watch.hpp"
#include "hosts/c10d/membership/membership.hpp"
#include "hosts/run_status/greeting.hpp"
#include "papers.hpp"
#include "store.hpp"

namespace rubato::c10d_hosts_detail {

/// The store as a run whose hosts come and go uses it: what a host knows is read from it, and what
/// it decides is put there. All functions throw StoreLost where it does not answer, and HostLost
/// where another run has taken the place of this one.
class RunStore {
 public:
  /// Connects, and comes to the run as a new host. `options` outlive it; `door` is where others try
  /// whether they reach this host (Door).
  RunStore(const ElasticOptions& options, std::string door);

  /// A connection of its own, within the keys of the run.
  [[nodiscard]] std::unique_ptr<Store> new_connection(milliseconds timeout,
                                                      const std::string& within = "") const;
  /// Connects again, where the connection was lost.
  void reconnect(milliseconds timeout);
  void disconnect() noexcept;

  /// Comes to the run under a new number.
  void arrive();
  /// Begins another run under the name of this one, which is over, unless another host has, and
  /// comes to that one.
  void open_again();
  /// What this host knows, as far as it matters for its decision.
  [[nodiscard]] Snapshot look(const Here& own);
  /// Begins to wait for what follows the newest generation, and says so where this host has its
  /// place there.
  void say_here(const Here& own);
  /// False where it is refused already.
  [[nodiscard]] bool refuse(HostNumber host, const std::string& why);
  /// Unless there is another one, or the end, already.
  void propose(const Members& members);
  /// This host is in the newest generation. Returns what its hosts have said of themselves.
  std::vector<Greeting> take_place();
  /// Ends the run where this host is in the newest generation: false where it is not, as the others
  /// have gone on, or the run has ended otherwise.
  [[nodiscard]] bool end(RunEnd end);
  /// Says that this host has gone.
  void leave();
  /// How many others of the newest generation are not known to have gone.
  [[nodiscard]] std::size_t others_there();

  /// Says that this host writes the run in a folder.
  void announce_folder(const std::string& folder);
  /// Says why the run cannot be written where it was.
  void announce_failure(const std::string& why);
  /// Who has said so last.
  [[nodiscard]] std::optional<RunWriter> writer();

  [[nodiscard]] Life life_of(HostNumber host) { return watch_->life_of(host); }

  [[nodiscard]] const Papers& papers() const { return papers_; }
  [[nodiscard]] const Members& newest() const { return newest_; }
  [[nodiscard]] const std::string& store_name() const { return store_name_; }

 private:
  // Makes the store's run this host's.
  void join_run();
  // To what follows the newest generation that is known. False where nothing does.
  bool advance();
  bool adopt(std::int64_t generation);
  void require_own_run();
  // False where this host does not lead, for which it need not know more.
  [[nodiscard]] bool leads_as_seen(Snapshot& snapshot);
  const SeenHost& see(HostNumber host, Snapshot& snapshot);
  // The most that a host of the newest generation has told of.
  [[nodiscard]] std::int64_t steps_told();
  [[nodiscard]] std::string proof_of_arrival(HostNumber host, const std::string& greeting) const;
  [[nodiscard]] std::string objection_to_host(HostNumber host, const std::string& text,
                                              const std::string& proof) const;

  const C10dOptions& meeting_;
  const std::optional<std::int64_t>& brings_;
  std::string door_;
  std::unique_ptr<Store> store_;
  std::string store_name_;
  std::optional<Watch> watch_;
  // Of the token and the run.
  std::string key_;
  Greeting greeting_;
  Papers papers_;

  Members newest_;
  std::optional<RunEnd> end_;
  // Snapshot::cut_off.
  std::string cut_off_;
  // When this host began to wait for what follows it.
  Clock::time_point since_{};
};

}  // namespace rubato::c10d_hosts_detail
