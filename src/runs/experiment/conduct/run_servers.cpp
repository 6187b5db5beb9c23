#include "run_servers.hpp"

#include <utility>

#include <fmt/format.h>
#include <time.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr int kMostFailures = 2;

}  // namespace

// A server loads the workload of the configuration that it is started with.
struct RunServers::Server {
  Server(const fs::path& program, const fs::path& config, int inherited)
      : process(program, {"rubato", "serve-runs", "--config", config.string()}, "/dev/null",
                inherited, client.servers_end()) {
    client.give();
  }

  ForkClient client;
  ChildProcess process;
};

RunServers::RunServers(fs::path program, int inherited)
    : program_(std::move(program)), inherited_(inherited) {}

RunServers::~RunServers() {
  servers_.clear();
  if (adopts_) static_cast<void>(adopt_orphans(false));
}

RunServers::Offer RunServers::offer(const std::string& workload, const fs::path& config) {
  if (const auto found = servers_.find(workload); found != servers_.end()) {
    switch (found->second->client.state()) {
      case ForkClient::State::preparing:
        return Offer::later;
      case ForkClient::State::prepared:
        return Offer::now;
      case ForkClient::State::gone:
        fail(workload, how_ended(*found->second));
        return Offer::none;
    }
  }
  if (servers_.size() >= kMost || failed_[workload] >= kMostFailures) return Offer::none;
  adopts_ = adopts_ || adopt_orphans(true);
  try {
    if (!adopts_) throw Error("the system has no PR_SET_CHILD_SUBREAPER");
    servers_.emplace(workload, std::make_unique<Server>(program_, config, inherited_));
    return Offer::later;
  } catch (const Error& error) {
    fail(workload, error.what());
    return Offer::none;
  }
}

RunServers::Forked RunServers::fork_run(const std::string& workload,
                                        const std::vector<std::string>& command,
                                        const fs::path& errors) {
  const auto found = servers_.find(workload);
  if (found == servers_.end()) return {};
  ForkClient& client = found->second->client;
  const auto [child, why] = client.ask({.errors = errors.string(), .words = command});
  if (child > 0) return {.offer = Offer::now, .process = child};
  if (why.empty() && client.state() != ForkClient::State::gone) return {.offer = Offer::later};
  fail(workload, why.empty() ? how_ended(*found->second) : why);
  // Another one would refuse as well.
  if (!why.empty()) failed_[workload] = kMostFailures;
  return {};
}

void RunServers::end(const std::string& workload) {
  servers_.erase(workload);
}

std::vector<std::string> RunServers::take_failures() {
  return std::exchange(failures_, {});
}

std::string RunServers::how_ended(Server& server) {
  // It closes the connection by ending, and can be waited for a moment later.
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  ChildEnd end;
  while (!server.process.has_ended(end)) nanosleep(&kPause, nullptr);
  return in_words(end);
}

void RunServers::fail(const std::string& workload, const std::string& why) {
  ++failed_[workload];
  failures_.push_back(why);
  servers_.erase(workload);
}

}  // namespace rubato
