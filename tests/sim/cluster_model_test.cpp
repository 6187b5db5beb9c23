#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "numbers/collective/schedule.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/memory_limit.hpp"
#include "support/sanitizers.hpp"

namespace rubato {
namespace {

// On hosts of four: a millisecond and 1 MB/s within a host, ten and 100 kB/s between hosts.
ClusterModel small_cluster(std::string algorithm, std::int64_t bytes) {
  ClusterModel model;
  model.substep_seconds = 0.5;
  model.algorithm = std::move(algorithm);
  model.gradient_bytes = bytes;
  model.cores_per_host = 4;
  model.latency_within_host = 1e-3;
  model.bandwidth_within_host = 1e6;
  model.latency_between_hosts = 1e-2;
  model.bandwidth_between_hosts = 1e5;
  return model;
}

double reduced(const std::string& algorithm, std::int64_t cores, std::int64_t bytes) {
  return StepTimes(small_cluster(algorithm, bytes)).reduce_seconds(cores);
}

TEST(StepTimes, OfTheReductionAreThoseComputedByHand) {
  // Of 4,000 bytes on the four cores of a host, a whole message takes 1 + 4 ms.
  EXPECT_THAT(reduced("sequential", 4, 4000), DoubleNear(6 * 5e-3, 1e-12));
  // A quarter takes 1 + 1 ms: three times around, and three times again.
  EXPECT_THAT(reduced("ring", 4, 4000), DoubleNear(6 * 2e-3, 1e-12));
  EXPECT_THAT(reduced("recursive-doubling", 4, 4000), DoubleNear(2 * 5e-3, 1e-12));
  // A half and a quarter, and back.
  EXPECT_THAT(reduced("halving-doubling", 4, 4000), DoubleNear(2 * (3e-3 + 2e-3), 1e-12));
  // One core, or nothing to say.
  EXPECT_EQ(reduced("ring", 1, 4000), 0);
  EXPECT_EQ(reduced("sequential", 4, 0), 0);
  // Eight cores on two hosts: an eighth between hosts takes 10 + 5 ms.
  EXPECT_THAT(reduced("ring", 8, 4000), DoubleNear(14 * 15e-3, 1e-12));
  // Two exchanges within the hosts, and one between them of 10 + 40 ms.
  EXPECT_THAT(reduced("recursive-doubling", 8, 4000), DoubleNear(2 * 5e-3 + 50e-3, 1e-12));
}

TEST(StepTimes, OfAReductionThatDidNotFitIntoMemoryAreNotZeroTheNextTime) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer ends the program where memory is refused";
  StepTimes times(small_cluster("sequential", 4));
  constexpr std::int64_t kBusy = 1 << 20;
  for (int i = 0; i < 2; ++i) {
    const test::MemoryLimit limit(std::size_t{32} << 20U);
    EXPECT_THROW(static_cast<void>(times.reduce_seconds(kBusy)), std::bad_alloc);
  }
}

// What is said of a ring is what its schedule says, where chunks are equal: whichever links there
// are, and whichever of them is the slower one.
TEST(StepTimes, OfARingAreThoseOfItsSchedule) {
  const Network::Link fast{1e-3, 1e-6};
  const Network::Link slow{1e-2, 1e-5};
  for (const auto& [within, between] : {std::pair(fast, slow), std::pair(slow, fast)}) {
    for (const std::int64_t of_host : {1, 2, 4, 64}) {
      const Network network{.within_host = within,
                            .between_hosts = between,
                            .ranks_per_host = static_cast<Rank>(of_host)};
      for (const std::int64_t cores : {2, 3, 4, 5, 8, 12, 31}) {
        const Schedule schedule = make_all_reduce("ring", static_cast<Rank>(cores), cores * 100);
        ClusterModel model = small_cluster("ring", cores * 400);
        model.cores_per_host = of_host;
        model.latency_within_host = within.latency;
        model.bandwidth_within_host = 1 / within.per_byte;
        model.latency_between_hosts = between.latency;
        model.bandwidth_between_hosts = 1 / between.per_byte;
        EXPECT_THAT(StepTimes(model).reduce_seconds(cores),
                    DoubleNear(cost_of(schedule, 4, network).seconds, 1e-9))
            << cores << " cores, " << of_host << " on a host, " << within.latency;
      }
    }
  }
}

// Nothing is within a host: by hand, of 4,000 bytes on four cores, a whole message takes 10 + 40
// ms by the network.
TEST(StepTimes, OfCoresWithHostsOfTheirOwnAreThoseOfTheNetwork) {
  ClusterModel model = small_cluster("ring", 4000);
  model.cores_per_host = 1;
  model.latency_within_host = 5;
  const auto seconds = [&](const std::string& algorithm) {
    model.algorithm = algorithm;
    return StepTimes(model).reduce_seconds(4);
  };
  EXPECT_THAT(seconds("ring"), DoubleNear(6 * 20e-3, 1e-12));
  EXPECT_THAT(seconds("sequential"), DoubleNear(6 * 50e-3, 1e-12));
  EXPECT_THAT(seconds("recursive-doubling"), DoubleNear(2 * 50e-3, 1e-12));
  EXPECT_THAT(seconds("halving-doubling"), DoubleNear(2 * (30e-3 + 20e-3), 1e-12));
  EXPECT_THAT(seconds("binary-tree"), DoubleNear(4 * 50e-3, 1e-12));
  EXPECT_THAT(seconds("double-binary-tree"), DoubleNear(6 * 30e-3, 1e-12));
  // Two by two: halves there, halves across, and back.
  EXPECT_THAT(seconds("two-level"), DoubleNear(3 * 30e-3, 1e-12));
}

// Every algorithm, by its schedule.
TEST(StepTimes, HaveEveryAlgorithm) {
  for (const std::string_view name : algorithm_names()) {
    EXPECT_GT(reduced(std::string(name), 6, 1'000'000), 0) << name;
  }
}

TEST(StepTimes, OfTheSlowestCore) {
  ClusterModel model = small_cluster("ring", 0);
  EXPECT_EQ(StepTimes(model).compute_seconds(8, 4), 2 * 0.5);
  EXPECT_EQ(StepTimes(model).compute_seconds(9, 4), 3 * 0.5);
  EXPECT_EQ(StepTimes(model).compute_seconds(2, 4), 0.5);
  model.slow_cores = {{.core = CoreRank{1}, .factor = 1.25}, {.core = CoreRank{3}, .factor = 4}};
  // Core 3 has 2 of 9 minibatches, and takes the time of 8.
  EXPECT_EQ(StepTimes(model).compute_seconds(9, 4), 8 * 0.5);
  // It has none of them, or is not there.
  EXPECT_EQ(StepTimes(model).compute_seconds(3, 4), 1.25 * 0.5);
  EXPECT_EQ(StepTimes(model).compute_seconds(9, 3), 3 * 1.25 * 0.5);
  model.update_seconds = 0.125;
  EXPECT_EQ(StepTimes(model).step_seconds(9, 3), 3 * 1.25 * 0.5 + 0.125);
}

// More cores than minibatches: those that have nothing send nothing.
TEST(StepTimes, ReduceAmongBusyCores) {
  StepTimes times(small_cluster("ring", 4000));
  EXPECT_THAT(times.step_seconds(4, 1000), DoubleEq(0.5 + times.reduce_seconds(4)));
}

// A thousand floats on two hosts: parts of 2,000 bytes, and four numbers of a subtree: 0.2032 s at
// 10 kB/s.
ClusterModel two_hosts() {
  ClusterModel model = small_cluster("recursive-doubling", 4000);
  model.hosts = 2;
  model.bandwidth_between_hosts = 1e4;
  model.memory_bandwidth = 1e6;
  return model;
}

TEST(StepTimes, OfTwoHostsAreThoseComputedByHand) {
  StepTimes times(two_hosts());
  // Eight minibatches on four cores: each host has four in one subtree, on two cores, twice half a
  // second; its cores exchange a gradient in 1 + 4 ms.
  EXPECT_THAT(times.host_seconds(8, 4), DoubleNear(1 + 5e-3, 1e-12));
  // 4,000 bytes go into messages, which are sent and are there a latency later.
  const ExchangeSeconds exchange = times.exchange_seconds(8, 4);
  EXPECT_THAT(exchange.sums, DoubleNear(4e-3 + 0.2032 + 1e-2, 1e-12));
  // Two halves are added.
  EXPECT_THAT(exchange.memory, DoubleNear(4e-3, 1e-12));
  EXPECT_THAT(exchange.parts, DoubleNear(0.2 + 1e-2, 1e-12));
  EXPECT_THAT(times.step_seconds(8, 4), DoubleNear(1.005 + 0.2172 + 0.004 + 0.21, 1e-12));
  EXPECT_EQ(StepTimes(small_cluster("ring", 4000)).exchange_seconds(8, 4).all(), 0);
}

// Hosts that have computed before they know that they are waited for.
TEST(StepTimes, OfHostsHaveALatencyInWhichTheyCompute) {
  ClusterModel model = two_hosts();
  model.substep_seconds = 1e-3;
  StepTimes times(model);
  const double computed = 2e-3 + 5e-3;
  EXPECT_THAT(times.host_seconds(8, 4), DoubleNear(computed, 1e-12));
  // The messages are ready after 11 ms, which is late enough,
  EXPECT_THAT(times.exchange_seconds(8, 4).sums, DoubleNear(4e-3 + 0.2032 + 1e-2, 1e-12));
  // and here after 7: they are sent after 10.
  model.memory_bandwidth = 1e12;
  EXPECT_THAT(computed + StepTimes(model).exchange_seconds(8, 4).sums,
              DoubleNear(1e-2 + 0.2032 + 1e-2, 1e-6));
}

// 128 minibatches on three hosts are 40, 48 and 40 in two, four and two subtrees. The one in the
// middle has 8 + 16 + 16 + 8 of them, one subtree after the other on its four cores.
TEST(StepTimes, OfHostsHaveTheirSubtreesOneAfterTheOther) {
  ClusterModel model = two_hosts();
  model.hosts = 3;
  model.gradient_bytes = 0;
  EXPECT_THAT(StepTimes(model).host_seconds(128, 12), DoubleNear((2 + 4 + 4 + 2) * 0.5, 1e-12));
  model.gradient_bytes = 4000;
  StepTimes times(model);
  EXPECT_THAT(times.host_seconds(128, 12), DoubleNear(6 + 4 * 2 * 5e-3, 1e-12));
  // Each subtree's sum is put into messages and sent to the others, two parts of 1,368 bytes, while
  // the next one is computed; the last when all are.
  EXPECT_THAT(times.exchange_seconds(128, 12).sums,
              DoubleNear(4 * 4e-3 + 2 * 1368 / 1e4 + 1e-2, 1e-12));
  EXPECT_THAT(times.exchange_seconds(128, 12).parts, DoubleNear(2 * 1336 / 1e4 + 1e-2, 1e-12));
  // A third of eight is added up.
  EXPECT_THAT(times.exchange_seconds(128, 12).memory, DoubleNear(8 / 3.0 * 4000 / 1e6, 1e-12));
}

// Where sending takes longer than computing, subtrees wait for those before them.
TEST(StepTimes, OfHostsSendOneSumAfterTheOther) {
  ClusterModel model = two_hosts();
  model.hosts = 3;
  model.substep_seconds = 1e-6;
  model.bandwidth_within_host = 1e12;
  model.latency_within_host = 0;
  model.memory_bandwidth = 1e12;
  StepTimes times(model);
  EXPECT_THAT(times.exchange_seconds(128, 12).sums + times.host_seconds(128, 12),
              DoubleNear(1e-2 + 4 * 2 * 1368 / 1e4 + 1e-2, 1e-6));
}

// Three quarters of the cores, and of 16 minibatches, are the first host's: 8 on three as 3, 4
// as 2.
TEST(StepTimes, OfHostsWhoseCoresTheTraceNames) {
  StepTimes times(two_hosts());
  const std::vector<std::int64_t> cores{3, 1};
  EXPECT_THAT(times.host_seconds(16, 4, cores),
              DoubleNear((3 + 2) * 0.5 + 2 * times.reduce_seconds(3), 1e-12));
  // Of its two subtrees the second is sent when it has computed, after 8 ms of putting both into
  // messages.
  EXPECT_THAT(times.exchange_seconds(16, 4, cores).sums, DoubleNear(8e-3 + 0.2032 + 1e-2, 1e-12));
  EXPECT_THAT(times.exchange_seconds(16, 4).sums, DoubleNear(4e-3 + 0.2032 + 1e-2, 1e-12))
      << "each as it was asked for";
  EXPECT_EQ(times.step_seconds(16, 4, cores),
            times.host_seconds(16, 4, cores) + times.exchange_seconds(16, 4, cores).all());
  // One host alone has the cores of all.
  EXPECT_EQ(StepTimes(small_cluster("ring", 4000)).step_seconds(16, 4, cores),
            StepTimes(small_cluster("ring", 4000)).step_seconds(16, 4));
  // Nothing for the second: its weight does not matter, nor that it is slow.
  ClusterModel model = two_hosts();
  model.host_weights = {1, 9};
  model.slow_cores = {{.core = CoreRank{4}, .factor = 2}};
  EXPECT_THAT(StepTimes(model).host_seconds(8, 4, std::vector<std::int64_t>{4, 0}),
              DoubleNear(2 * 0.5 + times.reduce_seconds(4), 1e-12));
}

TEST(StepTimes, OfUnequalHostsAreTheSlowestOnes) {
  ClusterModel model = two_hosts();
  model.gradient_bytes = 0;
  model.host_weights = {3, 1};
  // Three quarters of 16 minibatches, in two subtrees, on three of four cores: 8 as 3, 4 as 2.
  EXPECT_THAT(StepTimes(model).host_seconds(16, 4), DoubleNear((3 + 2) * 0.5, 1e-12));
  // The last core is the second host's only one, with four minibatches.
  model.slow_cores = {{.core = CoreRank{3}, .factor = 2}};
  EXPECT_THAT(StepTimes(model).host_seconds(16, 4), DoubleNear(8 * 0.5, 1e-12));
  // Fewer cores than hosts: each has one.
  EXPECT_THAT(StepTimes(model).host_seconds(4, 1), DoubleNear((2 + 1) * 0.5, 1e-12));
}

TEST(ClusterModel, HasHosts) {
  const ClusterModel model =
      parse_cluster("hosts=3,host-weights=1/2/0.5,memory-bandwidth=2e9,latency=1e-3");
  EXPECT_EQ(model.hosts, 3);
  EXPECT_EQ(model.memory_bandwidth, 2e9);
  EXPECT_THAT(host_weights_of(model), ElementsAre(1, 2, 0.5));
  EXPECT_THAT(host_weights_of(parse_cluster("hosts=2")), ElementsAre(1, 1));
  const auto error = [](const std::string& text) {
    return error_of([&] { return parse_cluster(text); });
  };
  EXPECT_EQ(error("hosts=3,host-weights=1/2"),
            "host-weights: are 2; accepted: one for each of 3 hosts");
  EXPECT_EQ(error("host-weights=1"),
            "host-weights: does nothing on one host; accepted: with hosts");
  EXPECT_EQ(error("memory-bandwidth=1"),
            "memory-bandwidth: does nothing on one host; accepted: with hosts");
  EXPECT_EQ(error("hosts=2,cores-per-host=4"),
            "cores-per-host: does nothing with hosts, which share the cores; accepted: without it");
  EXPECT_THAT(error("hosts=1025"), HasSubstr("accepted: a whole number from 1 to 1024"));
}

TEST(ClusterModel, IsReadFromText) {
  const ClusterModel model = parse_cluster(
      "substep=0.25,algorithm=halving-doubling,bytes=1000,cores-per-host=2,latency=1e-4,"
      "bandwidth=1e9,host-latency=1e-6,host-bandwidth=1e10,update=0.5,checkpoint-steps=10,"
      "checkpoint=3,restart=30");
  EXPECT_EQ(model, (ClusterModel{.substep_seconds = 0.25,
                                 .algorithm = "halving-doubling",
                                 .gradient_bytes = 1000,
                                 .cores_per_host = 2,
                                 .latency_within_host = 1e-6,
                                 .bandwidth_within_host = 1e10,
                                 .latency_between_hosts = 1e-4,
                                 .bandwidth_between_hosts = 1e9,
                                 .update_seconds = 0.5,
                                 .checkpoint_steps = 10,
                                 .checkpoint_seconds = 3,
                                 .restart_seconds = 30}));
  EXPECT_EQ(parse_cluster(""), ClusterModel());
  const ClusterModel market = parse_cluster(
      "machine=8,provision=60,join=120,join-spread=0.5,join-seed=7,notice=30,loses=checkpoint,"
      "billing=aws,mtbf=3600,mtbf-seed=5,false-notice=7200,false-notice-seed=6,on-demand=16,"
      "on-demand-price=3.5");
  EXPECT_EQ(market.market, (MarketModel{.machine = 8,
                                        .provision_seconds = 60,
                                        .join_seconds = 120,
                                        .join_spread = 0.5,
                                        .join_seed = 7,
                                        .notice_seconds = 30,
                                        .loses = Loses::checkpoint,
                                        .billing = Billing::aws,
                                        .mtbf_seconds = 3600,
                                        .mtbf_seed = 5,
                                        .false_notice_seconds = 7200,
                                        .false_notice_seed = 6,
                                        .on_demand_devices = 16,
                                        .on_demand_price = 3.5}));
  // The others have to load the same as those that join.
  EXPECT_EQ(market.restart_seconds, 120);
  EXPECT_EQ(parse_cluster("join=120,restart=5").restart_seconds, 5);
  EXPECT_EQ(cluster_arguments().size(), 33U);
}

TEST(ClusterModel, IsRefusedOutOfItsRange) {
  const auto error = [](const std::string& text) {
    return error_of([&] { return parse_cluster(text); });
  };
  EXPECT_THAT(error("substep=0"), HasSubstr("accepted: a number greater than 0"));
  EXPECT_EQ(error("restart=1e308"),
            "restart: '1e308' is out of range; accepted: a number of at least 0, up to 1e+300");
  EXPECT_THAT(error("algorithm=rings"), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(error("latenzy=1"), HasSubstr("latency"));
  EXPECT_THAT(error("checkpoint=3"), HasSubstr("does nothing without checkpoint-steps"));
  EXPECT_THAT(error("machine=0"), HasSubstr("accepted: a whole number from 1"));
  EXPECT_THAT(error("join-spread=1"), HasSubstr("does nothing without join"));
  EXPECT_THAT(error("join=1,join-seed=1"), HasSubstr("does nothing without join-spread"));
  EXPECT_THAT(error("mtbf=0"), HasSubstr("accepted: a number greater than 0"));
  EXPECT_THAT(error("mtbf-seed=2"), HasSubstr("does nothing without mtbf"));
  EXPECT_THAT(error("notice=1,false-notice=0"), HasSubstr("accepted: a number greater than 0"));
  EXPECT_EQ(error("false-notice=9"),
            "false-notice: does nothing without notice; accepted: with it");
  EXPECT_THAT(error("notice=1,false-notice-seed=2"),
              HasSubstr("does nothing without false-notice; accepted: with it"));
  EXPECT_THAT(error("billing=azure"), HasSubstr("accepted: steps, seconds, aws, gcp"));
  EXPECT_EQ(error_of([] { return parse_price("free"); }),
            "'free' is no price; accepted: a number of at least 0, or trace");
  EXPECT_THAT(error_of([] { return parse_price("-1"); }),
              HasSubstr("accepted: a number of at least 0"));
  EXPECT_EQ(parse_price("0.9"), (DevicePrice{.constant = 0.9}));
  const auto misuse = [](const auto& change) {
    ClusterModel model;
    change(model);
    return error_of([&] { return StepTimes(model); });
  };
  EXPECT_THAT(misuse([](ClusterModel& m) { m.bandwidth_between_hosts = 0; }),
              HasSubstr("cluster: bandwidth is 0; accepted: a number greater than 0"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.restart_seconds = 1e308; }),
              HasSubstr("cluster: restart is 1e+308; accepted: a number of at least 0, up to "));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.price.constant = -1; }),
              HasSubstr("cluster: price is -1"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.market.false_notice_seconds = 9; }),
              HasSubstr("cluster: false-notice does nothing without notice"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.cores_per_host = 0; }), HasSubstr("cores-per-host"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.hosts = 0; }), HasSubstr("cluster: hosts is 0"));
  EXPECT_THAT(misuse([](ClusterModel& m) {
                m.host_weights = {1, 1};
              }),
              HasSubstr("host-weights are 2; accepted: one for each of 1 hosts"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.host_weights = {0}; }),
              HasSubstr("cluster: host-weights is 0"));
  EXPECT_THAT(misuse([](ClusterModel& m) { m.memory_bandwidth = 0; }),
              HasSubstr("cluster: memory-bandwidth is 0"));
  EXPECT_THAT(misuse([](ClusterModel& m) {
                m.slow_cores = {{CoreRank{1}, 0.5}};
              }),
              HasSubstr("a factor of at least 1"));
  EXPECT_THAT(misuse([](ClusterModel& m) {
                m.slow_cores = {{CoreRank{1}, 2}, {CoreRank{1}, 2}};
              }),
              HasSubstr("core 1"));
}

}  // namespace
}  // namespace rubato
