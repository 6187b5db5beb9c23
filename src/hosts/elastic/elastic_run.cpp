#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/hosts/elastic_run.hpp>

#include "host_driver.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/session.hpp"

namespace rubato {

namespace {

// A program that trains by train_on_elastic_hosts().
class Caller final : public HostClient, public SessionOwner {
 public:
  Caller(const RunRequest& request, std::shared_ptr<const Workload> workload,
         const ElasticRunOptions& options)
      : request_(request), workload_(std::move(workload)), options_(options) {}

  [[nodiscard]] RunLocation location_of_first() override {
    return location_of(request_, [this](const std::string& line) { warn(line); });
  }
  [[nodiscard]] std::unique_ptr<HostSession> session_in(RunLocation location,
                                                        std::shared_ptr<Hosts> hosts,
                                                        RunRole role) override;
  [[nodiscard]] bool wants_to_end() override { return wants_to_stop() || wants_to_leave(); }
  [[nodiscard]] bool wants_to_stop() override {
    return options_.wants_to_stop && options_.wants_to_stop();
  }
  [[nodiscard]] bool wants_to_leave() override {
    return options_.wants_to_leave && options_.wants_to_leave();
  }
  void warn(const std::string& line) override {
    if (options_.report) options_.report(line);
  }
  [[nodiscard]] std::string to_go_on(const Run& run) const override {
    return fmt::format("to continue: ElasticRunOptions::continues with {}",
                       run.location().path().string());
  }

  // The session of the driver's that was made last.
  [[nodiscard]] const QuietSession& session() const { return *session_; }

 private:
  const RunRequest& request_;
  std::shared_ptr<const Workload> workload_;
  const ElasticRunOptions& options_;
  QuietSession* session_ = nullptr;
};

std::unique_ptr<HostSession> Caller::session_in(RunLocation location, std::shared_ptr<Hosts> hosts,
                                                RunRole role) {
  auto session = std::make_unique<QuietSession>(request_,
                                                SessionParts{.workload = workload_,
                                                             .location = std::move(location),
                                                             .hosts = std::move(hosts),
                                                             .follows = role == RunRole::follower},
                                                *this);
  if (options_.prepare) options_.prepare(session->run());
  session_ = session.get();
  return session;
}

}  // namespace

ElasticResult train_on_elastic_hosts(const RunConfiguration& configuration,
                                     std::shared_ptr<const Workload> workload,
                                     const JoinElasticHosts& join,
                                     const ElasticRunOptions& options) {
  const RunRequest request{
      .run = configuration, .out = options.out, .continues = options.continues};
  hosts_detail::HostFolder::remove_leftovers();
  Caller caller(request, workload, options);
  HostDriver driver(request, *workload, load_run_steps(configuration), join, options.hosts, caller);
  ElasticResult result{.outcome = driver.execute()};
  if (result.outcome.end == ElasticOutcome::End::trained) {
    result.summary = caller.session().outcome().summary;
  }
  if (driver.writes()) result.folder = driver.session()->run().location().path();
  return result;
}

}  // namespace rubato
