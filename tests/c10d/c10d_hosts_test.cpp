// Hosts that meet through a store and exchange by gloo: each a thread of this process.

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "c10d/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class C10dHosts : public testing::Test {
 protected:
  [[nodiscard]] std::vector<C10dOptions> hosts(const std::string& run, int count) const {
    std::vector<C10dOptions> all;
    all.reserve(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank) {
      all.push_back(test::options_at(server_, run, rank, count));
    }
    return all;
  }

  RendezvousServer server_{0};
};

TEST_F(C10dHosts, ExchangeAnyNumberOfBytes) {
  const auto errors = test::errors_of_hosts(hosts("bytes", 3), [](const C10dOptions& options) {
    C10dOptions own = options;
    own.weight = 1 + own.rank;
    const auto host = c10d_hosts(own);
    EXPECT_THAT(host->weights(), ElementsAre(1, 2, 3));
    for (const std::size_t bytes : {0UL, 1UL, 7UL, 4096UL, 3'000'001UL, 5UL}) {
      const auto taken = test::exchanged(*host, bytes, std::byte(10 + options.rank));
      for (int other = 0; other < 3; ++other) {
        if (other == options.rank) continue;
        EXPECT_EQ(taken[static_cast<std::size_t>(other)],
                  std::vector<std::byte>(bytes, std::byte(10 + other)));
      }
    }
  });
  EXPECT_THAT(errors, Each("no error"));
}

// Three exchanges under way, of which each has its own bytes, and flags of its own.
TEST_F(C10dHosts, ExchangeWhileTheyDoSomethingElse) {
  constexpr std::size_t kRounds = 3;
  const auto errors = test::errors_of_hosts(hosts("parts", 3), [](const C10dOptions& options) {
    const auto value = [](std::size_t round, int host) {
      return static_cast<std::byte>(10 * round + static_cast<std::size_t>(host));
    };
    const std::vector<std::size_t> bytes{100, 0, 3'000'001};
    const auto host = c10d_hosts(options);
    for (int step = 0; step < 3; ++step) {
      std::vector<std::vector<std::vector<std::byte>>> taken(kRounds);
      for (std::size_t round = 0; round < kRounds; ++round) {
        taken[round].resize(3, std::vector<std::byte>(bytes[round]));
        host->post_receives(
            std::vector<std::span<std::byte>>(taken[round].begin(), taken[round].end()));
      }
      std::vector<std::vector<std::byte>> given;
      for (std::size_t round = 0; round < kRounds; ++round) {
        if (step == 2 && round == 1 && options.rank == 1) host->ask_to_pause();
        given.emplace_back(bytes[round], value(round, options.rank));
        host->post_sends(std::vector<std::span<const std::byte>>(3, given.back()));
      }
      for (std::size_t round = 0; round < kRounds; ++round) {
        host->wait();
        EXPECT_EQ(host->pause_asked(), step == 2 && round >= 1);
        for (int other = 0; other < 3; ++other) {
          if (other == options.rank) continue;
          EXPECT_EQ(taken[round][static_cast<std::size_t>(other)],
                    std::vector<std::byte>(bytes[round], value(round, other)));
        }
      }
    }
    EXPECT_EQ(test::exchanged(*host, 1, std::byte{5})[options.rank == 0 ? 1 : 0].front(),
              std::byte{5});
  });
  EXPECT_THAT(errors, Each("no error"));
}

TEST_F(C10dHosts, ThatAbandonAnExchangeAreLost) {
  std::promise<void> done;
  const auto errors = test::errors_of_hosts(hosts("abandoned", 2), [&](const C10dOptions& options) {
    const auto host = c10d_hosts(options);
    std::vector<std::byte> memory(10);
    host->post_receives(std::vector<std::span<std::byte>>(2, memory));
    if (options.rank == 0) {
      host->post_sends(std::vector<std::span<const std::byte>>(2, memory));
      const std::string lost = error_of([&] { host->wait(); });
      done.set_value();
      throw Error(lost);
    }
    host->abandon();
    // Nothing of it is written to any more, and the host itself is still there.
    memory = {};
    done.get_future().wait();
    static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
  });
  EXPECT_THAT(errors[0], AllOf(StartsWith("host 1 is lost"), Not(HasSubstr("imed out"))));
  EXPECT_EQ(errors[1], "this host has left an exchange");
}

TEST_F(C10dHosts, NeedTheSameToken) {
  auto options = hosts("other tokens", 3);
  for (C10dOptions& of_host : options) of_host.token = "open sesame";
  options[2].token = "open barley";
  const std::string of_2 = "host 2 knows another token; accepted: the same on all hosts";
  EXPECT_THAT(
      test::errors_of_meeting(options),
      ElementsAre(of_2, of_2, "host 0 knows another token; accepted: the same on all hosts"));
  options = hosts("no token", 2);
  options[1].token = "open sesame";
  EXPECT_THAT(test::errors_of_meeting(options), Each(HasSubstr("knows another token")));
}

// Where host 0 serves the store it stays until the others know why.
TEST_F(C10dHosts, SayOnBothSidesWhatDiffers) {
  const test::FreePort port;
  const auto host = [&port](int rank, const char* data) {
    return C10dOptions{.count = 2, .rank = rank, .port = port.number(), .equal = {{"data", data}}};
  };
  EXPECT_THAT(test::errors_of_meeting({host(0, "a"), host(1, "b")}),
              ElementsAre("host 1 has another data (b, here a); accepted: the same on all hosts",
                          "host 0 has another data (a, here b); accepted: the same on all hosts"));
}

TEST_F(C10dHosts, AreAsManyAsTheySay) {
  auto options = hosts("three", 3);
  options[2].count = 4;
  const auto start = std::chrono::steady_clock::now();
  const std::string of_2 =
      "host 2 is one of 4 hosts, this host of 3; accepted: the same on all hosts";
  EXPECT_THAT(test::errors_of_meeting(options),
              ElementsAre(of_2, of_2,
                          "host 0 is one of 3 hosts, this host of 4; accepted: the same on all "
                          "hosts"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
}

TEST_F(C10dHosts, WaitForEachOtherNoLongerThanTold) {
  auto options = hosts("absent", 4);
  options.pop_back();
  options.erase(options.begin() + 1);
  // Long enough for the two that come, however busy the machine is.
  for (C10dOptions& of_host : options) of_host.timeout = seconds(5);
  const std::string error = fmt::format(
      "hosts 1, 3 of 4 have not come to the rendezvous 127.0.0.1:{} within 5 s", server_.port());
  EXPECT_THAT(test::errors_of_meeting(options), ElementsAre(error, error));
}

TEST_F(C10dHosts, NeedAStore) {
  const test::FreePort port;
  EXPECT_THAT(
      error_of([&] {
        return c10d_hosts({.count = 2, .rank = 1, .port = port.number(), .timeout = seconds(1)});
      }),
      StartsWith(fmt::format("cannot reach the rendezvous 127.0.0.1:{}: ", port.number())));
  EXPECT_THAT(error_of([&] { return c10d_hosts({.count = 2, .rank = 0, .port = server_.port()}); }),
              AllOf(StartsWith(fmt::format("cannot serve the rendezvous at 127.0.0.1:{}: ",
                                           server_.port())),
                    HasSubstr("ddress already in use")));
}

TEST_F(C10dHosts, HaveARankEach) {
  auto options = hosts("ranks", 2);
  options[0].timeout = seconds(5);
  options[1] = options[0];
  const auto errors = test::errors_of_meeting(options);
  EXPECT_THAT(errors, UnorderedElementsAre(
                          StartsWith("host 1 of 2 has not come"),
                          fmt::format("another process is host 0 at the rendezvous 127.0.0.1:{}; "
                                      "accepted: a rank for each host, and a new name for each run",
                                      server_.port())));
}

TEST_F(C10dHosts, ThatAreGoneAreErrors) {
  const auto errors = test::errors_of_hosts(hosts("gone", 3), [](const C10dOptions& options) {
    const auto host = c10d_hosts(options);
    static_cast<void>(test::exchanged(*host, 100, std::byte{1}));
    if (options.rank == 2) throw Error("a full disk");
    const auto start = std::chrono::steady_clock::now();
    const std::string lost = error_of([&] { return test::exchanged(*host, 100, std::byte{2}); });
    // At once, not when the time is over, and for ever.
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
    EXPECT_EQ(error_of([&] { return test::exchanged(*host, 100, std::byte{2}); }), lost);
    throw Error(lost);
  });
  // The other one that is left may have noticed it first.
  EXPECT_THAT(errors[0], MatchesRegex("host [12] is lost: .+"));
  EXPECT_THAT(errors[1], MatchesRegex("host [02] is lost: .+"));
  EXPECT_EQ(errors[2], "a full disk");
}

TEST_F(C10dHosts, ThatAreSilentAreErrors) {
  auto options = hosts("silent", 2);
  for (C10dOptions& of_host : options) of_host.timeout = seconds(5);
  std::promise<void> given_up;
  const auto errors = test::errors_of_hosts(options, [&given_up](const C10dOptions& of_host) {
    const auto host = c10d_hosts(of_host);
    static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
    if (of_host.rank == 1) {
      given_up.get_future().wait_for(std::chrono::minutes(1));
      static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
      return;
    }
    const std::string lost = error_of([&] { return test::exchanged(*host, 10, std::byte{1}); });
    given_up.set_value();
    throw Error(lost);
  });
  EXPECT_THAT(errors[0], AllOf(StartsWith("host 1 is lost: "), HasSubstr("imed out")));
  EXPECT_THAT(errors[1], StartsWith("host 0 is lost: "));
}

// Whoever is not at the same place of the same training is told so, and neither waits.
TEST_F(C10dHosts, CheckTheSizeOfWhatTheyGet) {
  for (const std::size_t other : {0UL, 99UL, 101UL, 1'000'000UL}) {
    const auto errors = test::errors_of_hosts(
        hosts(fmt::format("sizes {}", other), 2), [other](const C10dOptions& options) {
          const auto host = c10d_hosts(options);
          static_cast<void>(test::exchanged(*host, options.rank == 0 ? 100 : other, std::byte{1}));
        });
    const auto error = [&](int host, std::size_t theirs, std::size_t ours) {
      return fmt::format(
          "host {} sends {} bytes in exchange 2; this host is in exchange 2, of {} "
          "bytes; accepted: the same training on all hosts",
          host, theirs, ours);
    };
    EXPECT_THAT(errors[0], AnyOf(error(1, other, 100), StartsWith("host 1 is lost")));
    EXPECT_THAT(errors[1], AnyOf(error(0, 100, other), StartsWith("host 0 is lost")));
    EXPECT_TRUE(errors[0] == error(1, other, 100) || errors[1] == error(0, 100, other));
  }
}

TEST_F(C10dHosts, CompareTextsLater) {
  const auto errors = test::errors_of_hosts(hosts("texts", 3), [](const C10dOptions& options) {
    const auto host = c10d_hosts(options);
    require_equal(*host, std::vector<NamedText>{{"data", "abc"}, {"step", "7"}});
    require_equal(*host,
                  std::vector<NamedText>{{"data", "abc"}, {"step", options.rank == 1 ? "8" : "7"}});
  });
  EXPECT_THAT(errors,
              ElementsAre("host 1 has another step (8, here 7); accepted: the same on all hosts",
                          "host 0 has another step (7, here 8); accepted: the same on all hosts",
                          "host 1 has another step (8, here 7); accepted: the same on all hosts"));
}

TEST_F(C10dHosts, SayWhatIsAccepted) {
  const auto error = [](const C10dOptions& options) {
    return error_of([&] { return c10d_hosts(options); });
  };
  EXPECT_EQ(error({.count = 0}), "0 hosts; accepted: 1 to 1024");
  EXPECT_EQ(error({.count = 2, .rank = 2}),
            "host 2 of 2 hosts; accepted: 0 to one less than the number of hosts");
  EXPECT_EQ(error({.port = 70'000}), "the port 70000; accepted: 1 to 65535");
  EXPECT_EQ(error({.weight = 0}), "the weight 0; accepted: a number above 0");
  EXPECT_EQ(error({.timeout = milliseconds(10)}), "a time limit of 10 ms; accepted: at least 1 s");
  const test::FreePort port;
  EXPECT_THAT(error({.port = port.number(), .interface = "no-such-interface"}),
              AllOf(StartsWith("cannot listen at 'no-such-interface': "),
                    HasSubstr("accepted: an address of this machine, or the name of one of its "
                              "network interfaces")));
  EXPECT_EQ(error_of([] { const RendezvousServer server(-1); }),
            "the port -1; accepted: 1 to 65535, or 0 for any that is free");
}

}  // namespace
}  // namespace rubato
