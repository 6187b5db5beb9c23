#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// How an elastic run has ended on one host.
struct ElasticOutcome {
  enum class End {
    /// The run has ended on all hosts of the group, as this one's training says.
    trained,
    /// The run was stopped; the host that writes it has left a checkpoint.
    stopped,
    /// This host was stopped before it took part.
    stopped_as_newcomer,
    /// This host was stopped, and has written nothing: the others may continue, or another host
    /// still writes the folder.
    stopped_alone,
    stopped_beside_writer,
    /// This host has left the run to the others.
    left,
    /// The run had ended before this host took part, or ended while it was left behind.
    missed_run,
    missed_end,
    /// The run was stopped because no host can write it.
    unwritten,
  };
  End end = End::trained;
  /// Steps that this host has done; empty if it has no state.
  std::optional<std::int64_t> steps{};
  /// The run was stopped, and is not complete.
  bool was_stopped = false;
  /// Why no host can write it, or why the first one could not begin it (missed_run).
  std::string reason{};
  /// The checkpoint in which this host has kept an unwritten run; empty if it has not.
  std::string kept{};
};

/// Joins the hosts of a run: elastic_hosts(), or a function that calls it.
using JoinElasticHosts = std::function<std::shared_ptr<ElasticHosts>(ElasticOptions options)>;

struct ElasticRunOptions {
  /// The run's folder. Every host names one: the host that writes the run uses its own, and one
  /// that takes over continues in the folder of the host before if it can reach it.
  std::filesystem::path out;
  /// The folder may hold the run already, which is then continued.
  bool continues = false;
  /// The meeting point, and the numbers of hosts. `equal`, `brings`, `waits_for_opening` and
  /// `interrupted` are set by train_on_elastic_hosts().
  ElasticOptions hosts{};
  /// Called with each Run that this host makes, one for each role that it has: to add observers.
  /// May be empty.
  std::function<void(Run& run)> prepare{};
  /// Asked between two steps, and while the host waits for others: whether all hosts are to stop,
  /// with a checkpoint, and whether this host is to leave while the others continue. May be empty.
  std::function<bool()> wants_to_stop{};
  std::function<bool()> wants_to_leave{};
  /// Receives lines for people. May be empty.
  std::function<void(const std::string& line)> report{};
};

/// The result of train_on_elastic_hosts() on one host.
struct ElasticResult {
  ElasticOutcome outcome{};
  /// Set if the run has ended and this host has its result.
  std::optional<RunSummary> summary{};
  /// The folder of this host's last role; empty if it wrote none that is kept.
  std::filesystem::path folder{};
};

/// Trains a run together with other hosts, which come and go: the first one writes the run's
/// folder, and another one takes over if it is lost. Each host calls this with the same
/// configuration and workload. The weights are the same bits as those of a single host.
///
///     const auto configuration = rubato::read_configuration("run.toml");
///     const auto result = rubato::train_on_elastic_hosts(
///         configuration, rubato::torch_workload(configuration), rubato::elastic_hosts,
///         {.out = "runs/spring",
///          .hosts = {.meeting = {.count = 2, .address = "node0", .run = "spring"}}});
///
/// Throws what Run's constructor and Run::execute() throw; HostLost if the others have gone and the
/// run cannot continue, after a copy of its state was kept; and OutputError if no host can write
/// the run.
[[nodiscard]] ElasticResult train_on_elastic_hosts(const RunConfiguration& configuration,
                                                   std::shared_ptr<const Workload> workload,
                                                   const JoinElasticHosts& join,
                                                   const ElasticRunOptions& options);

}  // namespace rubato
