#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/fork_server.hpp"
#include "run_pool.hpp"

namespace rubato {

/// Processes that have loaded the workload of several runs and fork one for each of them
/// (`rubato serve-runs`). There is one for each workload, and there are at most kMost at a time.
/// The runs are children of this process, and do not depend on the server any more once they have
/// begun.
///
/// A workload whose server has ended twice, or has refused to fork, gets no further one.
class RunServers {
 public:
  static constexpr std::size_t kMost = 2;

  /// `inherited` is a descriptor that stays open in the servers and runs, as in ChildProcess.
  RunServers(std::filesystem::path program, int inherited);
  /// Ends the servers.
  ~RunServers();
  RunServers(const RunServers&) = delete;
  RunServers& operator=(const RunServers&) = delete;

  enum class Offer {
    none,   ///< the run has to be started by itself
    later,  ///< the server is still loading
    now,
  };
  /// Says whether a server can fork a run with this workload, which is not empty. If there is no
  /// server for it and there may be one more, starts one, with the workload of the run in `config`.
  [[nodiscard]] Offer offer(const std::string& workload, const std::filesystem::path& config);
  /// Returns whether there is a server for it.
  [[nodiscard]] bool has(const std::string& workload) const { return servers_.contains(workload); }

  struct Forked {
    Offer offer = Offer::none;
    /// The process of the run if `offer` is now.
    pid_t process = 0;
  };
  /// Forks a run. Its stderr goes to the file `errors`, and stdin and stdout are /dev/null.
  [[nodiscard]] Forked fork_run(const std::string& workload,
                                const std::vector<std::string>& command,
                                const std::filesystem::path& errors);

  /// Ends the server of a workload that nobody needs any more.
  void end(const std::string& workload);
  /// Returns, for each server that has failed since the last call, the reason.
  [[nodiscard]] std::vector<std::string> take_failures();

 private:
  struct Server;

  // Waits for the end of a server that has closed its connection.
  [[nodiscard]] static std::string how_ended(Server& server);
  void fail(const std::string& workload, const std::string& why);

  std::filesystem::path program_;
  int inherited_;
  bool adopts_ = false;
  std::map<std::string, std::unique_ptr<Server>> servers_;
  // The number of failures of the servers of a workload.
  std::map<std::string, int> failed_;
  std::vector<std::string> failures_;
};

}  // namespace rubato
