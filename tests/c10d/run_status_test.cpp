// How a run stands, by what its hosts have left in the store.

#include "hosts/run_status/run_status.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/hosts/rendezvous_server.hpp>

#include "hosts/rendezvous/store_client.hpp"
#include "hosts/run_status/greeting.hpp"
#include "hosts/run_status/liveness.hpp"
#include "hosts/run_status/members.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::hosts_detail {
namespace {

using testing::Field;

constexpr std::int64_t kNow = 1'000'000;

Greeting greeting_of(const std::string& machine) {
  return {.weight = 2,
          .machine = machine,
          .interface = "10.0.0.7",
          .equal = {{.name = "--cores", .text = "8"},
                    {.name = "--hosts", .text = "3"},
                    {.name = "--min-hosts", .text = "2"},
                    {.name = "--max-hosts", .text = "4"}}};
}

HostReading alive_after(std::optional<std::int64_t> steps) {
  return {.process = "boot/1 4711 99",
          .greeting = greeting_text(greeting_of("node0")),
          .progress = text_of({.steps = steps, .came = kNow - 90, .reported = kNow - 7}),
          .life = "17",
          .moves = true};
}

// Three hosts, 2, 5 and 6, train in generation 4.
RunReading three_train() {
  return {.newest = {.generation = 4,
                     .hosts = {{.host = 5, .standing = {.steps = 10}}, {.host = 2}, {.host = 6}},
                     .first_open = 7},
          .hosts = {{2, alive_after(20)}, {5, alive_after(21)}, {6, alive_after({})}},
          .writer = "5\n/runs/a",
          .now = kNow};
}

TEST(RunStatusOf, SaysWhatTheHostsHaveLeft) {
  const RunStatus status = status_of(three_train());
  EXPECT_EQ(status.state, RunState::trains);
  EXPECT_EQ(status.generation, 4);
  EXPECT_EQ(status.steps, 21);
  EXPECT_EQ(status.cores, 8);
  EXPECT_EQ(status.first, 3);
  EXPECT_EQ(status.least, 2);
  EXPECT_EQ(status.most, 4);
  ASSERT_TRUE(status.writer);
  EXPECT_EQ(status.writer->host, 5);
  EXPECT_EQ(status.writer->folder, "/runs/a");
  // By rank.
  ASSERT_THAT(status.hosts, ElementsAre(Field(&HostStatus::host, 5), Field(&HostStatus::host, 2),
                                        Field(&HostStatus::host, 6)));
  const HostStatus& first = status.hosts.front();
  EXPECT_EQ(first.rank, 0U);
  EXPECT_EQ(first.state, HostState::alive);
  EXPECT_EQ(first.machine, "node0");
  EXPECT_EQ(first.interface, "10.0.0.7");
  EXPECT_EQ(first.weight, 2);
  EXPECT_EQ(first.process, 4711);
  EXPECT_EQ(first.steps, 21);
  EXPECT_EQ(first.here_for, 90);
  EXPECT_EQ(first.silent_for, std::nullopt);
  EXPECT_EQ(status.hosts[2].steps, std::nullopt);
}

// Each of these differs from three that train in one thing.
TEST(RunStatusOf, SaysWhetherTheRunGoesOn) {
  struct Case {
    const char* what;
    std::function<void(RunReading&)> change;
    RunState state;
  };
  const auto silence = [](RunReading& reading, HostNumber host) {
    reading.hosts[host].moves = false;
  };
  const std::vector<Case> cases{
      {"complete", [](RunReading& reading) { reading.end = EndOfHosts::finished; },
       RunState::complete},
      {"stopped", [](RunReading& reading) { reading.end = EndOfHosts::paused; }, RunState::stopped},
      {"one silent", [&](RunReading& reading) { silence(reading, 2); }, RunState::regroups},
      {"one left", [](RunReading& reading) { reading.hosts[2].life = kLeft; }, RunState::regroups},
      {"one ended",
       [](RunReading& reading) { reading.hosts[2].process_state = ProcessState::ended; },
       RunState::regroups},
      {"one at the next group", [](RunReading& reading) { reading.hosts[2].is_here = true; },
       RunState::regroups},
      {"one unknown to the store", [](RunReading& reading) { reading.hosts.erase(2); },
       RunState::regroups},
      {"too few",
       [&](RunReading& reading) {
         silence(reading, 2);
         silence(reading, 5);
       },
       RunState::waits},
      {"enough with a newcomer",
       [&](RunReading& reading) {
         silence(reading, 2);
         silence(reading, 5);
         reading.hosts[7] = alive_after({});
       },
       RunState::regroups},
      {"nobody",
       [&](RunReading& reading) {
         for (const HostNumber host : {2, 5, 6}) silence(reading, host);
       },
       RunState::deserted},
      {"nobody but a newcomer",
       [&](RunReading& reading) {
         for (const HostNumber host : {2, 5, 6}) silence(reading, host);
         reading.hosts[7] = alive_after({});
       },
       RunState::deserted},
      {"a newcomer waits", [](RunReading& reading) { reading.hosts[7] = alive_after({}); },
       RunState::trains},
      {"not begun", [](RunReading& reading) { reading.newest = {}; }, RunState::waits},
  };
  for (const auto& [what, change, state] : cases) {
    RunReading reading = three_train();
    change(reading);
    EXPECT_EQ(status_of(reading).state, state) << what;
  }
}

TEST(RunStatusOf, SaysHowManyAreWaitedFor) {
  RunReading reading = three_train();
  reading.newest = {};
  reading.hosts.erase(6);
  EXPECT_EQ(status_of(reading).there, 2U);
  EXPECT_EQ(status_of(reading).wanted, 3U) << "--hosts before it begins";
  reading = three_train();
  reading.hosts[5].moves = reading.hosts[6].moves = false;
  EXPECT_EQ(status_of(reading).there, 1U);
  EXPECT_EQ(status_of(reading).wanted, 2U) << "--min-hosts afterwards";
}

TEST(RunStatusOf, SaysForHowLongAHostIsSilent) {
  RunReading reading = three_train();
  reading.hosts[2].moves = false;
  const HostStatus host = status_of(reading).hosts[1];
  EXPECT_EQ(host.state, HostState::silent);
  EXPECT_EQ(host.silent_for, 7);
  // By a clock that is ahead of this one.
  reading.hosts[2].progress = text_of({.steps = 1, .came = kNow + 5, .reported = kNow + 6});
  EXPECT_EQ(status_of(reading).hosts[1].silent_for, 0);
  EXPECT_EQ(status_of(reading).hosts[1].here_for, 0);
}

TEST(RunStatusOf, ShowsNewcomersUntilTheyHaveGone) {
  RunReading reading = three_train();
  for (const HostNumber host : {7, 8, 9}) reading.hosts[host] = alive_after({});
  reading.hosts[8].refusal = "there are 4 hosts already";
  reading.hosts[9].life = kLeft;
  const RunStatus status = status_of(reading);
  ASSERT_EQ(status.hosts.size(), 5U);
  EXPECT_EQ(status.hosts[3].host, 7);
  EXPECT_EQ(status.hosts[3].rank, std::nullopt);
  EXPECT_EQ(status.hosts[3].state, HostState::alive);
  EXPECT_EQ(status.hosts[4].state, HostState::refused);
  EXPECT_EQ(status.hosts[4].refusal, "there are 4 hosts already");
  EXPECT_EQ(status.there, 4U);
}

// Whatever somebody has put there.
TEST(RunStatusOf, LeavesOutWhatCannotBeRead) {
  RunReading reading = three_train();
  for (auto& [number, host] : reading.hosts) {
    host.process = host.greeting = host.progress = "nonsense";
  }
  reading.writer = "nonsense";
  const RunStatus status = status_of(reading);
  EXPECT_EQ(status.state, RunState::trains);
  EXPECT_EQ(status.steps, 10) << "with which the group was formed";
  EXPECT_FALSE(status.writer);
  EXPECT_FALSE(status.cores);
  EXPECT_THAT(status.hosts, Each(Field(&HostStatus::machine, "")));
  EXPECT_THAT(status.hosts, Each(Field(&HostStatus::process, std::nullopt)));
}

TEST(HostProgressText, IsReadAsItWasWritten) {
  for (const HostProgress& progress : {HostProgress{.steps = 12, .came = 3, .reported = 4},
                                       HostProgress{.came = 5, .reported = 6}}) {
    EXPECT_EQ(parse_progress(text_of(progress)), progress);
  }
  for (const char* text : {"", "12", "12 3", "-1 3 4", "many 3 4", "none 3 x"}) {
    EXPECT_EQ(parse_progress(text), std::nullopt) << text;
  }
}

// --- In a store ---

class ReadRun : public testing::Test {
 protected:
  [[nodiscard]] C10dOptions place(const std::string& run, const std::string& token = "") const {
    return {.port = server_.port(), .run = run, .token = token};
  }
  void put(const std::string& key, const std::string& value) {
    client_.set(fmt::format("{}/{}", run_prefix("run"), key), value);
  }
  // A run that has ended: nobody's signs of life are waited for.
  void put_run(const std::string& token) {
    const std::string key = signing_key(token, "r");
    const Members members{.generation = 1, .hosts = {{.host = 1}}, .first_open = 2};
    put(kRunKey, "r");
    put(keys_.turn(1), signed_text(members, key));
    put(keys_.turn(2), signed_text(EndOfHosts::finished, 2, key));
    put(keys_.newest(), "1");
    put(keys_.arrivals(), "2");
    put(keys_.life(1), kLeft);
    put(keys_.progress(1), "30 1 2");
    put(keys_.writer(), "1\n/runs/a");
    put(keys_.refusal(2), "no");
  }
  [[nodiscard]] std::string error_at(const C10dOptions& place) const {
    return error_of([&] { return read_run(place); });
  }

  const RunKeys keys_{"r"};
  const RendezvousServer server_{0};
  rendezvous_detail::StoreClient client_{{.host = "127.0.0.1", .port = server_.port()}};
};

TEST_F(ReadRun, FindsWhatIsThere) {
  put_run("secret");
  const RunReading reading = read_run(place("run", "secret"));
  EXPECT_EQ(reading.newest.generation, 1);
  EXPECT_EQ(reading.end, EndOfHosts::finished);
  EXPECT_EQ(reading.writer, "1\n/runs/a");
  ASSERT_TRUE(reading.hosts.contains(1));
  EXPECT_EQ(reading.hosts.at(1).progress, "30 1 2");
  ASSERT_TRUE(reading.hosts.contains(2));
  EXPECT_EQ(reading.hosts.at(2).refusal, "no");
}

TEST_F(ReadRun, SaysWhatIsAccepted) {
  put_run("secret");
  EXPECT_THAT(error_at(place("run", "other")),
              HasSubstr("know another token; accepted: the same on all hosts"));
  EXPECT_EQ(error_at(place("none")),
            fmt::format("there is no run 'none' at the rendezvous 127.0.0.1:{}; accepted: "
                        "HOST:PORT/NAME as in --rendezvous of its hosts",
                        server_.port()));
  client_.set("rubato/fixed/greeting/0", "hello");
  EXPECT_THAT(error_at(place("fixed")), HasSubstr("do not come and go; accepted: a run with "));
}

}  // namespace
}  // namespace rubato::hosts_detail
