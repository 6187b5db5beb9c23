#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/cluster_model.hpp>
#include <rubato/testing.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

// Two equal hosts of 8 minibatches have a subtree each, of 1,000 floats: a part is 500 of them, and
// of a subtree's sum four numbers more.
TEST(HostTraffic, OfTwoHostsIsThatComputedByHand) {
  const HostTraffic each{.roots = 1,
                         .sums_sent = 2032,
                         .sums_received = 2032,
                         .parts_sent = 2000,
                         .parts_received = 2000};
  EXPECT_THAT(host_traffic(8, std::vector<double>{1, 1}, 1000), ElementsAre(each, each));
}

// 128 minibatches on three equal hosts are 40, 48 and 40 (ADR 0034), in two, four and two subtrees.
// Of 1,000 floats the parts are 333, 333 and 334: 1,332 and 1,336 bytes; and 1,336 in whole doubles
// and 32 where they are those of a subtree's sum.
TEST(HostTraffic, OfThreeHostsIsThatComputedByHand) {
  const std::vector<HostTraffic> traffic = host_traffic(128, std::vector<double>{1, 1, 1}, 1000);
  const auto host = [](std::int64_t roots, std::int64_t part) {
    return HostTraffic{.roots = roots,
                       .sums_sent = roots * 2 * 1368,
                       .sums_received = (8 - roots) * 1368,
                       .parts_sent = 2 * part,
                       .parts_received = 4000 - part};
  };
  EXPECT_THAT(traffic, ElementsAre(host(2, 1332), host(4, 1332), host(2, 1336)));
  EXPECT_EQ(traffic[1].sent(), 4 * 2 * 1368 + 2 * 1332);
  EXPECT_EQ(traffic[1].received(), 4 * 1368 + 2668);
}

TEST(HostTraffic, OfAHostWithoutMinibatchesIsItsPart) {
  const std::vector<HostTraffic> traffic = host_traffic(1, std::vector<double>{1, 3}, 1000);
  EXPECT_THAT(traffic, ElementsAre(HostTraffic{.roots = 0,
                                               .sums_sent = 0,
                                               .sums_received = 2032,
                                               .parts_sent = 2000,
                                               .parts_received = 2000},
                                   HostTraffic{.roots = 1,
                                               .sums_sent = 2032,
                                               .sums_received = 0,
                                               .parts_sent = 2000,
                                               .parts_received = 2000}));
}

// Counts what goes out and comes in.
class CountingHosts final : public Hosts {
 public:
  explicit CountingHosts(std::shared_ptr<Hosts> hosts) : hosts_(std::move(hosts)) {}

  [[nodiscard]] int count() const override { return hosts_->count(); }
  [[nodiscard]] int rank() const override { return hosts_->rank(); }
  [[nodiscard]] std::vector<double> weights() const override { return hosts_->weights(); }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    sent.push_back(bytes_of(out));
    received.push_back(bytes_of(in));
    hosts_->exchange(out, in);
  }

  // By exchange.
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;

 private:
  template <class Messages>
  [[nodiscard]] std::int64_t bytes_of(const Messages& messages) const {
    std::size_t bytes = 0;
    for (int host = 0; host < count(); ++host) {
      if (host != rank()) bytes += messages[static_cast<std::size_t>(host)].size();
    }
    return static_cast<std::int64_t>(bytes);
  }

  std::shared_ptr<Hosts> hosts_;
};

// What hosts exchange in a training of these steps, at last; in minibatches of one sample.
void expect_traffic(const std::vector<double>& weights, const std::vector<std::int64_t>& steps) {
  std::vector<std::shared_ptr<CountingHosts>> hosts;
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::int64_t values = 0;
  for (std::shared_ptr<Hosts>& host : test::emulated_hosts(weights)) {
    hosts.push_back(std::make_shared<CountingHosts>(std::move(host)));
    auto objective = test::tiny_objective();
    values = static_cast<std::int64_t>(objective->flat_parameters().size() + objective->averaged());
    trainers.push_back(std::make_unique<Trainer>(std::move(objective), test::trace_of(steps),
                                                 TrainOptions{.epochs = 1,
                                                              .minibatch_size = 1,
                                                              .rule = "constant",
                                                              .cores = 3,
                                                              .hosts = hosts.back()}));
  }
  std::vector<std::thread> threads;
  threads.reserve(trainers.size());
  for (const auto& trainer : trainers) {
    threads.emplace_back([&trainer] { static_cast<void>(trainer->fit()); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto traffic_of = [&](std::int64_t minibatches) {
    return host_traffic(minibatches, weights, values, sizeof(double));
  };
  // Of each step one for the parts, and before it as many as the host with most subtrees has.
  const auto subtrees = [](const std::vector<HostTraffic>& traffic) {
    return static_cast<std::size_t>(
        std::ranges::max_element(traffic, {}, &HostTraffic::roots)->roots);
  };
  std::size_t exchanges = 0;
  for (const std::int64_t step : steps) exchanges += subtrees(traffic_of(step)) + 1;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const CountingHosts& counted = *hosts[host];
    ASSERT_GE(counted.sent.size(), exchanges);
    // What comes before the first step is not a step's.
    auto sent = counted.sent.end() - static_cast<std::ptrdiff_t>(exchanges);
    auto received = counted.received.end() - static_cast<std::ptrdiff_t>(exchanges);
    for (const std::int64_t step : steps) {
      const auto traffic = traffic_of(step);
      const auto of_sums = static_cast<std::ptrdiff_t>(subtrees(traffic));
      const HostTraffic& expected = traffic[host];
      const std::int64_t nothing = 0;
      EXPECT_EQ(std::accumulate(sent, sent + of_sums, nothing), expected.sums_sent)
          << host << " of " << step;
      EXPECT_EQ(std::accumulate(received, received + of_sums, nothing), expected.sums_received);
      EXPECT_EQ(sent[of_sums], expected.parts_sent);
      EXPECT_EQ(received[of_sums], expected.parts_received);
      sent += of_sums + 1;
      received += of_sums + 1;
    }
  }
}

TEST(HostTraffic, IsWhatHostsExchange) {
  // They come to the 48 samples of an epoch.
  const std::vector<std::int64_t> steps{1, 2, 7, 16, 22};
  expect_traffic({1, 1}, steps);
  expect_traffic({1, 1, 1}, steps);
  expect_traffic({1, 2.5, 1, 0.5}, steps);
}

}  // namespace
}  // namespace rubato
