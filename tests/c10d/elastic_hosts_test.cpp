// Hosts that come and go, each on a thread of its own.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "c10d/support.hpp"
#include "hosts/c10d/store.hpp"
#include "hosts/rendezvous/store_client.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Regrouping = ElasticHosts::Regrouping;

constexpr HostStanding kNew{};

HostStanding after(std::int64_t steps) {
  return {.steps = steps};
}

class Elastic : public testing::Test {
 protected:
  // Of a run that begins with so many hosts.
  [[nodiscard]] ElasticOptions options(int count) const {
    return {.meeting = test::options_at(*server_, "run", 0, count), .least = 1, .most = 4};
  }
  void come(const ElasticOptions& options) { hosts_.push_back(elastic_hosts(options)); }
  // So many hosts come and form the first group.
  void begin(int count) { begin(count, options(count)); }
  void begin(int count, const ElasticOptions& options) {
    for (int i = 0; i < count; ++i) come(options);
    regroup_all(std::vector<HostStanding>(hosts_.size()));
    sort_by_rank();
  }
  // Calls the function for each host, on a thread of its own.
  void on_each(const std::function<void(std::size_t)>& call) const {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < hosts_.size(); ++i) threads.emplace_back(call, i);
  }
  void regroup_all(const std::vector<HostStanding>& standings) {
    on_each(
        [&](std::size_t i) { EXPECT_EQ(hosts_[i]->regroup(standings[i]), Regrouping::formed); });
  }
  // One more host joins, which brings a standing, as soon as the others notice it.
  void let_in(const std::shared_ptr<ElasticHosts>& late, const HostStanding& standing,
              const std::vector<HostStanding>& standings) {
    const std::jthread comes([&] { EXPECT_EQ(late->regroup(standing), Regrouping::formed); });
    exchange_until_due();
    regroup_all(standings);
  }
  // All of them give a byte to each other.
  std::vector<std::string> exchange_all() {
    std::vector<std::string> errors(hosts_.size());
    on_each([&](std::size_t i) {
      errors[i] = error_of([&] {
        const auto own = static_cast<std::byte>(hosts_[i]->rank());
        const auto taken = test::exchanged(*hosts_[i], 1, own);
        for (std::size_t host = 0; host < taken.size(); ++host) {
          if (static_cast<int>(host) == hosts_[i]->rank()) continue;
          EXPECT_EQ(taken[host][0], static_cast<std::byte>(host));
        }
      });
    });
    return errors;
  }
  void sort_by_rank() {
    std::ranges::sort(hosts_, {}, [](const auto& host) { return host->rank(); });
  }
  // Until there is somebody who wants to come, by exchanges.
  void exchange_until_due() {
    const auto end = std::chrono::steady_clock::now() + seconds(30);
    while (!hosts_.front()->regroup_due() && std::chrono::steady_clock::now() < end) {
      EXPECT_THAT(exchange_all(), Each("no error"));
    }
    for (const auto& host : hosts_) EXPECT_TRUE(host->regroup_due());
  }

  // At the same port, as another store.
  void start_server_again() {
    const int port = server_->port();
    server_.reset();
    server_ = std::make_unique<RendezvousServer>(port);
  }

  std::unique_ptr<RendezvousServer> server_ = std::make_unique<RendezvousServer>(0);
  std::vector<std::shared_ptr<ElasticHosts>> hosts_;
};

TEST_F(Elastic, FormAGroup) {
  begin(3);
  for (int rank = 0; rank < 3; ++rank) {
    const ElasticHosts& host = *hosts_[static_cast<std::size_t>(rank)];
    EXPECT_EQ(host.rank(), rank);
    EXPECT_EQ(host.count(), 3);
    EXPECT_EQ(host.generation(), 1);
    EXPECT_EQ(host.steps_done(), 0);
    EXPECT_FALSE(host.regroup_due());
    EXPECT_THAT(host.standings(), ElementsAre(kNew, kNew, kNew));
    EXPECT_THAT(host.weights(), ElementsAre(1, 1, 1));
  }
  EXPECT_THAT(exchange_all(), Each("no error"));
}

TEST_F(Elastic, GoOnWithoutOneThatIsLost) {
  begin(3);
  EXPECT_THAT(exchange_all(), Each("no error"));
  EXPECT_THAT(hosts_.front()->story(), StartsWith("group 1: 3 hosts; new: 1, 2, 3; formed in "));
  hosts_.erase(hosts_.begin());
  EXPECT_THAT(exchange_all(), Each(HasSubstr("is lost")));
  for (const auto& host : hosts_) EXPECT_TRUE(host->regroup_due());
  // One of them had come a step further.
  regroup_all({after(7), after(8)});
  for (int rank = 0; rank < 2; ++rank) {
    const ElasticHosts& host = *hosts_[static_cast<std::size_t>(rank)];
    EXPECT_EQ(host.rank(), rank);
    EXPECT_EQ(host.count(), 2);
    EXPECT_EQ(host.generation(), 2);
    EXPECT_EQ(host.steps_done(), 8);
    EXPECT_THAT(host.standings(), ElementsAre(after(7), after(8)));
    EXPECT_THAT(host.story(), AllOf(StartsWith("group 2: 2 hosts; gone: 1; host "),
                                    HasSubstr(" is lost: "), HasSubstr("; formed in ")));
  }
  EXPECT_THAT(exchange_all(), Each("no error"));
}

// A host that is left behind does not know of the group that the others have formed without it. It
// cannot end the run, and comes as a new one.
TEST_F(Elastic, TakeBackOneThatWasLeftBehind) {
  ElasticOptions brief = options(3);
  brief.meeting.timeout = seconds(5);
  begin(3, brief);
  const auto stopped = hosts_[1];
  const auto slow = hosts_[2];
  hosts_.resize(1);
  EXPECT_THAT(exchange_all(), ElementsAre(HasSubstr("is lost")));
  // The others are there, and do not come.
  regroup_all({after(3)});
  EXPECT_EQ(hosts_.front()->count(), 1);
  EXPECT_FALSE(stopped->leave(true));
  let_in(slow, after(2), {after(9)});
  EXPECT_THAT(slow->standings(), ElementsAre(after(9), kNew));
  EXPECT_EQ(slow->rank(), 1);
  EXPECT_TRUE(hosts_.front()->leave(true));
}

// Who comes is told why, and so are the others.
TEST_F(Elastic, RefuseOthers) {
  std::mutex mutex;
  std::vector<std::string> told;
  ElasticOptions ours = options(2);
  ours.meeting.equal = {{.name = "--lr", .text = "0.1"}};
  ours.most = 2;
  ElasticOptions theirs = ours;
  ours.report = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    told.push_back(line);
  };
  begin(2, ours);
  // The hosts look once at another option, and twice where there is no room: one of those that are
  // there might just have died.
  const std::string other_option =
      "it has another --lr (0.5, here 0.1); accepted: the same on all hosts";
  const std::string no_room =
      "there are 2 hosts already; accepted: no more than that (--max-hosts)";
  for (const auto& [lr, looks, why] :
       {std::tuple("0.5", 1, other_option), std::tuple("0.1", 2, no_room)}) {
    theirs.meeting.equal[0].text = lr;
    std::string error;
    std::thread comes(
        [&] { error = error_of([&] { return elastic_hosts(theirs)->regroup(kNew); }); });
    for (int look = 0; look < looks; ++look) {
      EXPECT_THAT(told, IsEmpty());
      exchange_until_due();
      regroup_all({after(1), after(1)});
    }
    comes.join();
    EXPECT_EQ(error, "the hosts of the run refuse this one: " + why);
    EXPECT_EQ(std::exchange(told, {}), std::vector{"a host is refused: " + why});
    EXPECT_THAT(exchange_all(), Each("no error"));
  }
}

// As it is when a host dies while a group is formed, and another one is started in its place.
TEST_F(Elastic, TakeInWhoeverComesForOneThatHasJustDied) {
  ElasticOptions two = options(2);
  two.most = 2;
  begin(2, two);
  const auto late = elastic_hosts(two);
  std::thread comes([&] { EXPECT_EQ(late->regroup(kNew), Regrouping::formed); });
  exchange_until_due();
  // Both are there, and no place is free; then one of them is gone.
  regroup_all({after(1), after(1)});
  hosts_.pop_back();
  EXPECT_THAT(exchange_all(), ElementsAre(HasSubstr("is lost")));
  regroup_all({after(1)});
  comes.join();
  EXPECT_THAT(late->standings(), ElementsAre(after(1), kNew));
  hosts_.push_back(late);
  EXPECT_THAT(exchange_all(), Each("no error"));
}

// It cannot even read who the hosts are.
TEST_F(Elastic, KnowAToken) {
  ElasticOptions ours = options(1);
  ours.meeting.token = "open sesame";
  begin(1, ours);
  for (const std::string token : {"", "open caraway"}) {
    ElasticOptions theirs = options(1);
    theirs.meeting.token = token;
    EXPECT_EQ(error_of([&] { return elastic_hosts(theirs); }),
              "the hosts of the run know another token; accepted: the same on all hosts");
  }
}

// Of hosts that come at the same time one leads, and refuses the other.
TEST_F(Elastic, KnowATokenBeforeTheyBegin) {
  ElasticOptions ours = options(1);
  ours.meeting.token = "open sesame";
  come(ours);
  ElasticOptions theirs = options(1);
  const auto stranger = elastic_hosts(theirs);
  regroup_all({kNew});
  EXPECT_EQ(hosts_.front()->count(), 1);
  EXPECT_THAT(error_of([&] { return stranger->regroup(kNew); }),
              HasSubstr("another token; accepted: the same on all hosts"));
}

// It would begin the run anew, as nobody is there yet.
TEST_F(Elastic, TakeInOneThatComesToAStoreThatIsStartedAgain) {
  begin(2);
  start_server_again();
  ElasticOptions heavy = options(2);
  heavy.meeting.weight = 3;
  const auto late = elastic_hosts(heavy);
  let_in(late, kNew, {after(5), after(5)});
  EXPECT_EQ(late->rank(), 2);
  EXPECT_EQ(late->steps_done(), 5);
  EXPECT_THAT(late->standings(), ElementsAre(after(5), after(5), kNew));
  EXPECT_THAT(late->weights(), ElementsAre(1, 1, 3));
  hosts_.push_back(late);
  EXPECT_THAT(exchange_all(), Each("no error"));
}

TEST_F(Elastic, KnowWhoWritesTheRun) {
  begin(2);
  EXPECT_FALSE(hosts_.back()->writer().has_value());
  hosts_.front()->announce_folder("/runs/a");
  const auto writer = hosts_.back()->writer();
  ASSERT_TRUE(writer.has_value());
  EXPECT_EQ(writer->folder, "/runs/a");
  EXPECT_TRUE(writer->is_here);
  EXPECT_EQ(writer->process, RunWriter::Process::runs);
}

TEST_F(Elastic, EndTogether) {
  begin(3);
  hosts_.front()->leave(false);
  EXPECT_EQ(hosts_.back()->regroup({.steps = 10, .finished = true}), Regrouping::ended);
  EXPECT_FALSE(hosts_.back()->pause_asked());
}

TEST_F(Elastic, PauseTogether) {
  begin(3);
  hosts_[1]->ask_to_pause();
  EXPECT_THAT(exchange_all(), Each("no error"));
  for (const auto& host : hosts_) EXPECT_TRUE(host->pause_asked());
  hosts_[1]->leave(true);
  // One that has missed it hears of it.
  EXPECT_EQ(hosts_[2]->regroup(after(4)), Regrouping::ended);
  EXPECT_TRUE(hosts_[2]->pause_asked());
}

// A host has come to the next group, is asked to stop before it has heard of it, and goes: the run
// ends for those who have listed it, and they do not wait for it.
TEST_F(Elastic, PauseBehindAGroupThatIsJustListed) {
  std::atomic<bool> interrupted = false;
  ElasticOptions asked = options(3);
  asked.interrupted = [&] { return interrupted.load(); };
  come(options(3));
  come(asked);
  come(options(3));
  const auto to_stop = hosts_[1];
  regroup_all({kNew, kNew, kNew});
  sort_by_rank();
  // The one that stops is not the one that lists.
  std::erase(hosts_, to_stop);
  const auto leader = hosts_.front();
  ASSERT_LT(leader->rank(), to_stop->rank());
  hosts_.pop_back();
  interrupted = true;
  EXPECT_THROW(static_cast<void>(to_stop->regroup(after(1))), HostLost);
  const auto start = std::chrono::steady_clock::now();
  std::thread lists([&] { EXPECT_EQ(leader->regroup(after(1)), Regrouping::ended); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(to_stop->leave(true));
  lists.join();
  EXPECT_TRUE(leader->pause_asked());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
}

// The step in which it was said may be lost.
TEST_F(Elastic, DoNotForgetThatTheyAreToPause) {
  begin(3);
  hosts_[1]->ask_to_pause();
  EXPECT_THAT(exchange_all(), Each("no error"));
  const auto late = elastic_hosts(options(3));
  hosts_.erase(hosts_.begin() + 1);
  EXPECT_THAT(exchange_all(), Each(HasSubstr("is lost")));
  hosts_.push_back(late);
  regroup_all({after(1), after(1), kNew});
  EXPECT_FALSE(late->pause_asked());
  EXPECT_THAT(exchange_all(), Each("no error"));
  EXPECT_TRUE(late->pause_asked());
}

// With the exchange of the step in which somebody has asked for it, on all of them alike.
TEST_F(Elastic, LeaveWhereTheOthersAreEnough) {
  begin(3);
  hosts_[0]->ask_to_leave();
  EXPECT_THAT(exchange_all(), Each("no error"));
  for (const auto& host : hosts_) {
    EXPECT_TRUE(host->regroup_due());
    EXPECT_FALSE(host->pause_asked());
    EXPECT_EQ(host->is_leaving(), host == hosts_[0]);
  }
  hosts_[0]->go();
  hosts_.erase(hosts_.begin());
  regroup_all({after(1), after(1)});
  EXPECT_THAT(hosts_[0]->story(), HasSubstr("2 hosts; gone: 1"));
  EXPECT_THAT(exchange_all(), Each("no error"));
  EXPECT_FALSE(hosts_[0]->regroup_due());
}

TEST_F(Elastic, PauseWhereTooFewWouldRemain) {
  ElasticOptions two = options(3);
  two.least = 2;
  begin(3, two);
  hosts_[0]->ask_to_leave();
  hosts_[2]->ask_to_leave();
  EXPECT_THAT(exchange_all(), Each("no error"));
  for (const auto& host : hosts_) {
    EXPECT_TRUE(host->pause_asked());
    EXPECT_FALSE(host->is_leaving());
  }
}

TEST_F(Elastic, CanBeSparedWhereTheOthersAreEnough) {
  begin(2);
  hosts_[0]->abandon();
  EXPECT_TRUE(hosts_[0]->can_be_spared());
  hosts_[1]->go();
  EXPECT_FALSE(hosts_[0]->can_be_spared());
}

TEST_F(Elastic, PassOnARequestToSaveOnce) {
  begin(2);
  hosts_[1]->ask_to_save();
  EXPECT_FALSE(hosts_[0]->take_save_request());
  EXPECT_THAT(exchange_all(), Each("no error"));
  for (const auto& host : hosts_) {
    EXPECT_TRUE(host->take_save_request());
    EXPECT_FALSE(host->take_save_request());
  }
  EXPECT_THAT(exchange_all(), Each("no error"));
  EXPECT_FALSE(hosts_[0]->take_save_request());
}

// By the host that brings as many steps as they have done; the others come to that run.
TEST_F(Elastic, AreOpenedAgainByWhoBringsTheCheckpoint) {
  begin(2);
  hosts_[0]->report_steps(12);
  hosts_[1]->report_steps(11);
  // The steps are told when they leave.
  hosts_[0]->leave(true);
  hosts_[1]->leave(true);
  hosts_.clear();
  ElasticOptions bringing = options(3);
  bringing.brings = 11;
  come(bringing);
  EXPECT_EQ(hosts_[0]->regroup(kNew), Regrouping::ended);
  hosts_.clear();
  ElasticOptions waiting = options(3);
  waiting.waits_for_opening = true;
  come(waiting);
  come(waiting);
  bringing.brings = 12;
  come(bringing);
  const auto opener = hosts_.back();
  regroup_all({kNew, kNew, kNew});
  EXPECT_EQ(opener->rank(), 0);
  EXPECT_EQ(opener->generation(), 1);
  EXPECT_THAT(exchange_all(), Each("no error"));
}

TEST_F(Elastic, WaitForOthersUntilInterrupted) {
  ElasticOptions two = options(2);
  two.least = 2;
  std::atomic<bool> interrupted = false;
  two.interrupted = [&] { return interrupted.load(); };
  come(two);
  std::thread interrupts([&] {
    std::this_thread::sleep_for(milliseconds(300));
    interrupted = true;
  });
  EXPECT_EQ(error_of([&] { return hosts_.front()->regroup(kNew); }),
            "interrupted while it waited for other hosts");
  interrupts.join();
}

TEST_F(Elastic, SayThatNobodyIsLeft) {
  begin(1);
  const auto late = elastic_hosts(options(1));
  hosts_.clear();
  EXPECT_EQ(error_of([&] { return late->regroup(kNew); }),
            "the hosts of the run have gone, and its state with them");
}

TEST_F(Elastic, GiveUpWithTheirStore) {
  auto server = std::make_unique<RendezvousServer>(0);
  ElasticOptions there = options(1);
  there.meeting = test::options_at(*server, "run", 0, 1);
  there.meeting.timeout = seconds(5);
  begin(1, there);
  server.reset();
  // A group needs none.
  EXPECT_THAT(exchange_all(), ElementsAre("no error"));
  EXPECT_THAT(error_of([&] { return hosts_.front()->regroup(after(1)); }),
              HasSubstr("cannot reach the rendezvous"));
}

TEST_F(Elastic, RefuseOptionsOutOfRange) {
  const auto error_with = [this](const std::function<void(ElasticOptions&)>& change) {
    ElasticOptions changed = options(2);
    change(changed);
    return error_of([&] { return elastic_hosts(changed); });
  };
  EXPECT_EQ(error_with([](ElasticOptions& options) { options.least = 3; }),
            "at least 3 hosts; accepted: 1 to 2, the number that the run begins with");
  EXPECT_EQ(error_with([](ElasticOptions& options) { options.least = 0; }),
            "at least 0 hosts; accepted: 1 to 2, the number that the run begins with");
  EXPECT_EQ(error_with([](ElasticOptions& options) { options.most = 1; }),
            "at most 1 hosts; accepted: 2, the number that the run begins with, to 1024");
  EXPECT_THAT(error_with([](ElasticOptions& options) { options.meeting.run.clear(); }),
              HasSubstr("a store that outlives all hosts"));
  EXPECT_THAT(error_with([](ElasticOptions& options) { options.meeting.count = 0; }),
              HasSubstr("0 hosts; accepted"));
}

// The first key comes late, and the second never: the time limit is not one for each of them.
TEST(ServedStore, WaitsForSeveralKeysAtOnce) {
  const RendezvousServer server(0);
  hosts_detail::ServedStore store({.host = "127.0.0.1", .port = server.port()});
  // Both far from the other end of what is told apart, for a busy machine.
  constexpr milliseconds kLimit{6000};
  constexpr milliseconds kLate{3000};
  const auto begun = std::chrono::steady_clock::now();
  std::thread other([&] {
    std::this_thread::sleep_until(begun + kLate);
    rendezvous_detail::StoreClient({.host = "127.0.0.1", .port = server.port()}).set("a", "here");
  });
  EXPECT_EQ(error_of([&] {
              store.wait({"a", "b"}, kLimit);
            }),
            "the rendezvous has no 'b' within the time limit");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLate + kLimit);
  other.join();
}

}  // namespace
}  // namespace rubato
