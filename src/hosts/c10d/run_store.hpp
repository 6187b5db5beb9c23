#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/run_status/greeting.hpp"
#include "membership.hpp"
#include "presence.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

/// The store as a run whose hosts come and go uses it: reads what a host knows, and writes what it
/// decides. All functions throw StoreLost if the store does not answer, and HostLost if another run
/// has taken the place of this one.
class RunStore {
 public:
  /// Connects, and joins the run as a new host. `options` must outlive the store; others
  /// test at `probe_address` whether they reach this host (ProbeListener).
  RunStore(const ElasticOptions& options, std::string probe_address);

  /// Opens another connection, within the keys of the run.
  [[nodiscard]] std::unique_ptr<Store> new_connection(milliseconds timeout,
                                                      const std::string& within = "") const;
  /// Connects again if the connection was lost.
  void reconnect(milliseconds timeout);
  void disconnect() noexcept;

  /// Joins the run under a new number.
  void arrive();
  /// Begins another run under the name of this one, which is over, unless another host has, and
  /// joins it.
  void open_again();
  /// Reads everything that the decision of this host depends on.
  [[nodiscard]] Snapshot look(const Here& own);
  /// Begins to wait for the successor of the newest generation, and says so if this host has its
  /// place in that.
  void say_here(const Here& own);
  /// Returns false if the host is refused already.
  [[nodiscard]] bool refuse(HostNumber host, const std::string& why);
  /// Puts the next generation, unless another one, or the end, is there already.
  void propose(const Members& members);
  /// Takes this host's place in the newest generation, which contains it. Returns the greetings of
  /// its hosts.
  std::vector<Greeting> take_place();
  /// Ends the run if this host is in the newest generation. Returns false if it is not, because the
  /// others have continued, or if the run has ended in another way.
  [[nodiscard]] bool end(EndOfHosts end);
  /// Says that this host has gone.
  void leave();
  /// Number of other hosts of the newest generation that are not known to have gone.
  [[nodiscard]] std::size_t others_there();

  /// Says that this host writes the run into a folder.
  void announce_folder(const std::string& folder);
  /// Says why the run cannot be written into its folder.
  void announce_failure(const std::string& why);
  /// The host that has announced a folder last.
  [[nodiscard]] std::optional<RunWriter> writer();

  [[nodiscard]] Life life_of(HostNumber host) { return watch_->life_of(host); }

  [[nodiscard]] const HostRecord& record() const { return record_; }
  [[nodiscard]] const Members& newest() const { return newest_; }
  [[nodiscard]] const std::string& store_name() const { return store_name_; }

 private:
  // Makes the store's run this host's.
  void join_run();
  // Moves on to the successor of the newest known generation. Returns false if there is none.
  bool advance();
  bool adopt(std::int64_t generation);
  void require_own_run();
  const SeenHost& see(HostNumber host, Snapshot& snapshot);
  // The most steps that a host of the newest generation has told.
  [[nodiscard]] std::int64_t reported_steps();
  [[nodiscard]] std::string proof_of_arrival(HostNumber host, const std::string& greeting) const;
  [[nodiscard]] std::string objection_to_host(HostNumber host, const std::string& text,
                                              const std::string& proof) const;

  const C10dOptions& meeting_;
  const std::optional<std::int64_t>& brings_;
  std::string probe_address_;
  std::unique_ptr<Store> store_;
  std::string store_name_;
  std::optional<Watch> watch_;
  // Signing key, derived from the token and the run.
  std::string key_;
  Greeting greeting_;
  HostRecord record_;

  Members newest_;
  std::optional<EndOfHosts> end_;
  // Snapshot::cut_off.
  std::string cut_off_;
  // Time at which this host began to wait for the successor of the newest generation.
  Clock::time_point since_{};
};

}  // namespace rubato::hosts_detail
