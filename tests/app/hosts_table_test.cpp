// What `rubato hosts` prints, and docs/hosts.md shows.

#include "clients/app/hosts/hosts_table.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/json_fields.hpp"
#include "support/json_schema.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using namespace hosts_detail;

// Two of three hosts train, one has been stopped, and a fourth one waits.
RunStatus example() {
  const auto host = [](HostNumber number, const char* machine, const char* address,
                       std::int64_t process) {
    return HostStatus{.host = number,
                      .state = HostState::alive,
                      .machine = machine,
                      .interface = address,
                      .weight = 1,
                      .process = process,
                      .here_for = 3752};
  };
  RunStatus status{.state = RunState::regroups,
                   .generation = 2,
                   .steps = 18204,
                   .there = 3,
                   .cores = 8,
                   .first = 3,
                   .least = 2,
                   .most = 4,
                   .writer = AnnouncedWriter{.host = 2, .folder = "/data/runs/spring"},
                   .hosts = {host(2, "node1", "10.0.0.2", 2117), host(3, "node2", "10.0.0.3", 986),
                             host(4, "node0", "10.0.0.1", 3120), host(5, "node3", "eth0", 1450)}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    status.hosts[rank].rank = rank;
    status.hosts[rank].steps = 18204;
  }
  status.hosts[1].state = HostState::silent;
  status.hosts[1].silent_for = 12;
  status.hosts[1].steps = 18198;
  status.hosts[1].weight = 2;
  status.hosts[2].here_for = 425;
  status.hosts[3].here_for = 1;
  return status;
}

TEST(HostsTable, IsDocumented) {
  const std::string shown = "$ rubato hosts anywhere:29500/spring --token-file token\n" +
                            hosts_text(example(), {}) + "```\n";
  EXPECT_NE(test::read_file(RUBATO_HOSTS_MD).find(shown), std::string::npos) << shown;
}

TEST(HostsTable, SaysWhyAHostIsRefusedAndWhatIsUnknown) {
  RunStatus status{.state = RunState::waits,
                   .there = 1,
                   .wanted = 2,
                   .hosts = {{.host = 1, .state = HostState::refused, .refusal = "no\x1b[2J"}}};
  EXPECT_EQ(hosts_text(status, {}),
            "run  waits for hosts: 1 of 2 have joined\n\n"
            "host  rank  machine  address  process  weight  steps  here for  state\n"
            "   1     -  -        -              -       -      -         -  refused: no?[2J\n");
}

TEST(HostsTable, FitsATerminal) {
  std::string text = hosts_text(example(), {.columns = 60});
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    EXPECT_LE(end, 60U) << text.substr(0, end);
  }
}

TEST(HostsTable, IsTheSameAsJson) {
  const auto json = nlohmann::json::parse(hosts_json(example()));
  test::expect_fields(json, R"({"state": "regroups", "group": 2, "wanted": null, "last_step": 18204,
        "writer": {"host": 2, "folder": "/data/runs/spring"}})");
  ASSERT_EQ(json["hosts"].size(), 4U);
  EXPECT_EQ(json["hosts"][0]["rank"], 0);
  EXPECT_EQ(json["hosts"][1]["state"], "silent");
  EXPECT_EQ(json["hosts"][1]["silent_for_seconds"], 12);
  EXPECT_EQ(json["hosts"][3]["rank"], nullptr);
  EXPECT_EQ(json["hosts"][3]["steps"], nullptr);
  EXPECT_EQ(json["hosts"][3]["address"], "eth0");
}

TEST(HostsTable, IsAsItsSchemaSays) {
  const test::JsonSchema schema(hosts_form().schema);
  RunStatus status = example();
  EXPECT_EQ(schema.violation(nlohmann::json::parse(hosts_json(status))), "");
  EXPECT_EQ(schema.unseen(), std::set<std::string>());
  for (const RunState state : {RunState::waits, RunState::trains, RunState::deserted,
                               RunState::stopped, RunState::complete}) {
    status.state = state;
    status.writer.reset();
    EXPECT_EQ(schema.violation(nlohmann::json::parse(hosts_json(status))), "");
  }
  for (const HostState state : {HostState::left, HostState::ended, HostState::refused}) {
    status.hosts.front().state = state;
    EXPECT_EQ(schema.violation(nlohmann::json::parse(hosts_json(status))), "");
  }
}

}  // namespace
}  // namespace rubato::app
