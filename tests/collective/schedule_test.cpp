#include "numbers/collective/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr std::array<std::int64_t, 6> kLengths{0, 1, 2, 7, 64, 1003};

std::vector<Rank> rank_counts() {
  std::vector<Rank> counts{64};
  for (Rank ranks = 1; ranks <= 33; ++ranks) counts.push_back(ranks);
  return counts;
}

std::int64_t log2_floor(std::int64_t n) {
  std::int64_t log = 0;
  while (n >>= 1) ++log;
  return log;
}

TEST(Schedule, OfEveryAlgorithmIsAnAllReduce) {
  for (const std::string_view name : algorithm_names()) {
    for (const Rank ranks : rank_counts()) {
      for (const std::int64_t length : kLengths) {
        EXPECT_EQ(find_fault(make_all_reduce(name, ranks, length)), "")
            << name << " on " << ranks << " ranks, " << length << " elements";
      }
    }
  }
}

// Whatever two levels are asked for, on numbers of ranks that they divide and others.
TEST(Schedule, OfTwoLevelsByArgumentsIsAnAllReduce) {
  const auto flat = algorithm_names().first(algorithm_names().size() - 1);
  for (const std::string_view inner : flat) {
    for (const std::string_view outer : flat) {
      for (const int hosts : {1, 2, 3, 4, 5}) {
        const std::string name =
            fmt::format("two-level:hosts={},inner={},outer={}", hosts, inner, outer);
        for (const Rank ranks : {1, 2, 3, 4, 5, 7, 8, 12, 13, 32, 35}) {
          for (const std::int64_t length : {0, 1, 7, 100}) {
            const Schedule schedule = make_all_reduce(name, ranks, length);
            EXPECT_EQ(schedule.ranks, ranks);
            EXPECT_EQ(find_fault(schedule), "")
                << name << " on " << ranks << " ranks, " << length << " elements";
          }
        }
      }
    }
  }
}

TEST(Schedule, OfTwoLevelsTakesItsArguments) {
  EXPECT_EQ(make_all_reduce("two-level:hosts=2,inner=halving-doubling,outer=ring", 8, 640).phases,
            make_two_level_schedule("halving-doubling", "ring", 2, 4, 640).phases);
  EXPECT_EQ(make_all_reduce("two-level:hosts=4", 8, 640).phases,
            make_two_level_schedule("ring", "recursive-doubling", 4, 2, 640).phases);
  EXPECT_EQ(make_all_reduce("two-level:outer=ring", 9, 640).phases,
            make_two_level_schedule("ring", "ring", 3, 3, 640).phases);
  // Fewer ranks than hosts.
  EXPECT_EQ(make_all_reduce("two-level:hosts=16,outer=ring", 6, 640).phases,
            make_all_reduce("ring", 6, 640).phases);
  // Seven ranks on two hosts: the seventh is a core more of the first one.
  const Schedule uneven = make_all_reduce("two-level:hosts=2", 7, 640);
  const Transfer over{.from = 6, .to = 0, .begin = 0, .end = 640};
  EXPECT_EQ(uneven.phases.front(), TransferPhase{over});
}

TEST(Schedule, OfTwoLevelsRejectsWhatItCannotBe) {
  const auto error = [](std::string_view name) {
    return error_of([&] { require_algorithm(name); });
  };
  EXPECT_EQ(error("two-level"), "no error");
  EXPECT_EQ(error("two-level:hosts=2,inner=ring,outer=ring"), "no error");
  EXPECT_THAT(error("two-level:hosts=0"), HasSubstr("two-level: hosts: "));
  EXPECT_THAT(error("two-level:hosts=x"), HasSubstr("'x' is not a number"));
  EXPECT_THAT(error("two-level:host=2"), HasSubstr("did you mean 'hosts'?"));
  EXPECT_THAT(error("two-level:inner=rings"),
              AllOf(HasSubstr("two-level: inner: "), HasSubstr("did you mean 'ring'?")));
  EXPECT_THAT(error("two-level:outer=two-level"), HasSubstr("two-level: outer: unknown value"));
  EXPECT_THAT(error("two-level:hosts"), HasSubstr("accepted: two-level:NAME=VALUE"));
  EXPECT_THAT(error("ring:hosts=2"), HasSubstr("ring takes no arguments"));
}

TEST(Schedule, OfAThousandRanksIsCheckedInTime) {
  for (const std::string_view name : {"ring", "halving-doubling", "double-binary-tree"}) {
    EXPECT_EQ(find_fault(make_all_reduce(name, 500, 500)), "") << name;
  }
}

TEST(Schedule, OfOneRankOrOfNothingIsEmpty) {
  for (const std::string_view name : algorithm_names()) {
    EXPECT_TRUE(make_all_reduce(name, 1, 100).phases.empty()) << name;
    EXPECT_TRUE(make_all_reduce(name, 8, 0).phases.empty()) << name;
  }
}

TEST(Schedule, IsKnownByItsName) {
  EXPECT_THAT(error_of([] { return make_all_reduce("rings", 2, 1); }),
              HasSubstr("did you mean 'ring'?"));
}

// --- what the check finds
// -------------------------------------------------------------------------

class PlantedFault : public testing::TestWithParam<std::string_view> {
 protected:
  PlantedFault() : schedule_(make_all_reduce(GetParam(), 6, 100)) {}
  Schedule schedule_;
};

TEST_P(PlantedFault, AnyTransferThatIsMissing) {
  for (std::size_t i = 0; i < schedule_.phases.size(); ++i) {
    for (std::size_t k = 0; k < schedule_.phases[i].size(); ++k) {
      Schedule faulty = schedule_;
      faulty.phases[i].erase(faulty.phases[i].begin() + static_cast<std::ptrdiff_t>(k));
      EXPECT_NE(find_fault(faulty), "") << "transfer " << k << " of phase " << i;
    }
  }
}

TEST_P(PlantedFault, AnyTransferThatIsDoubled) {
  for (std::size_t i = 0; i < schedule_.phases.size(); ++i) {
    Schedule faulty = schedule_;
    faulty.phases[i].push_back(faulty.phases[i].front());
    EXPECT_NE(find_fault(faulty), "") << "phase " << i;
  }
}

TEST_P(PlantedFault, AnyRangeThatIsTooShort) {
  for (std::size_t i = 0; i < schedule_.phases.size(); ++i) {
    Schedule faulty = schedule_;
    Transfer& transfer = faulty.phases[i].back();
    if (transfer.size() < 2) continue;
    --transfer.end;
    EXPECT_NE(find_fault(faulty), "") << "phase " << i;
  }
}

TEST_P(PlantedFault, AnAdditionThatCopies) {
  Schedule faulty = schedule_;
  faulty.phases.front().front().kind = TransferKind::copy;
  EXPECT_NE(find_fault(faulty), "");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PlantedFault,
                         testing::ValuesIn(algorithm_names().begin(), algorithm_names().end()));

TEST(ScheduleCheck, SaysWhatIsWrongAndWhere) {
  const Transfer good{.from = 1, .to = 0, .begin = 0, .end = 4};
  const Transfer back{.from = 0, .to = 1, .begin = 0, .end = 4, .kind = TransferKind::copy};
  EXPECT_EQ(find_fault({.ranks = 2, .length = 4, .phases = {{good}, {back}}}), "");
  EXPECT_THAT(find_fault({.ranks = 2, .length = 3, .phases = {{good}, {back}}}),
              HasSubstr("phase 0: the addition of [0, 4) from rank 1 to rank 0 is not within"));
  EXPECT_THAT(find_fault({.ranks = 2, .length = 4, .phases = {{good}}}),
              HasSubstr("rank 1 lacks a contribution"));
  EXPECT_THAT(find_fault({.ranks = 2, .length = 4, .phases = {{good}, {good}, {back}}}),
              HasSubstr("phase 1: the addition of [0, 4) from rank 1 to rank 0 brings"));
  const Transfer other{.from = 2, .to = 0, .begin = 3, .end = 4};
  EXPECT_THAT(find_fault({.ranks = 3, .length = 4, .phases = {{good, other}}}),
              HasSubstr("phase 0: rank 0 is written to twice at once"));
}

TEST(ScheduleCheck, RefusesATransferToItself) {
  const Transfer good{.from = 1, .to = 0, .begin = 0, .end = 4};
  const Transfer back{.from = 0, .to = 1, .begin = 0, .end = 4, .kind = TransferKind::copy};
  for (const TransferKind kind : {TransferKind::copy, TransferKind::add}) {
    const Transfer itself{.from = 1, .to = 1, .begin = 0, .end = 4, .kind = kind};
    EXPECT_THAT(
        find_fault({.ranks = 2, .length = 4, .phases = {{good}, {back}, {itself}}}),
        HasSubstr("phase 2: the " + std::string(kind == TransferKind::copy ? "copy" : "addition") +
                  " of [0, 4) from rank 1 to rank 1 goes from a rank to itself"));
  }
}

// --- what it costs
// --------------------------------------------------------------------------------

// n ranks, S bytes.
struct ClosedForm {
  std::int64_t phases;
  std::int64_t bytes_of_a_rank;
  std::int64_t depth;
};

void expect_cost(std::string_view name, std::int64_t n, std::int64_t elements,
                 const ClosedForm& expected) {
  const ScheduleCost cost = cost_of(make_all_reduce(name, static_cast<Rank>(n), elements), 4);
  EXPECT_EQ(cost.phases, expected.phases) << name << " on " << n;
  EXPECT_EQ(cost.most_bytes_of_a_rank, expected.bytes_of_a_rank) << name << " on " << n;
  EXPECT_EQ(cost.depth, expected.depth) << name << " on " << n;
}

TEST(ScheduleCost, IsTheClosedForm) {
  constexpr std::int64_t kElements = 2880;  // a multiple of every number of ranks here
  constexpr std::int64_t kBytes = 4 * kElements;
  for (const std::int64_t n : {2, 3, 4, 5, 8, 16, 64}) {
    expect_cost("sequential", n, kElements, {2 * (n - 1), (n - 1) * kBytes, n - 1});
    expect_cost("ring", n, kElements, {2 * (n - 1), 2 * (n - 1) * kBytes / n, n - 1});
  }
  for (const std::int64_t n : {2, 4, 8, 16, 64}) {
    const std::int64_t log = log2_floor(n);
    expect_cost("recursive-doubling", n, kElements, {log, log * kBytes, log});
    expect_cost("halving-doubling", n, kElements, {2 * log, 2 * (n - 1) * kBytes / n, log});
  }
}

// Two send to one: it sends nothing, and the busiest sends once.
TEST(ScheduleCost, CountsBytesWhereTheyAreSent) {
  const Transfer first{.from = 0, .to = 2, .begin = 0, .end = 10};
  const Transfer second{.from = 1, .to = 2, .begin = 0, .end = 10};
  const ScheduleCost cost = cost_of({.ranks = 3, .length = 10, .phases = {{first}, {second}}}, 4);
  EXPECT_EQ(cost.most_bytes_of_a_rank, 40);
  EXPECT_EQ(cost.bytes, 80);
  EXPECT_EQ(cost.messages, 2);
  EXPECT_EQ(cost.depth, 2);
}

TEST(ScheduleCost, OfTheDoubleTreeIsHalfTheSingleOnesForEveryRank) {
  for (const Rank n : {8, 16, 64}) {
    const ScheduleCost one = cost_of(make_all_reduce("binary-tree", n, 1000), 4);
    const ScheduleCost two = cost_of(make_all_reduce("double-binary-tree", n, 1000), 4);
    // An inner rank of one tree is a leaf of the other: (1 + 2) halves and 1 half at most, against
    // 1 + 2 whole arrays.
    EXPECT_EQ(one.most_bytes_of_a_rank, 3 * 4000);
    EXPECT_LE(two.most_bytes_of_a_rank, 2 * 4000);
    EXPECT_EQ(one.bytes, two.bytes);
  }
}

TEST(ScheduleCost, CountsLatencyBandwidthAndAdditions) {
  const Schedule ring = make_all_reduce("ring", 4, 400);
  const double a = 1e-6;
  const double b = 1e-9;
  const double c = 1e-10;
  const Network network{.within_host = {a, b}, .add_per_byte = c};
  // 6 phases with a quarter each, half of which add.
  EXPECT_NEAR(cost_of(ring, 4, network).seconds, 6 * (a + 400 * b) + 3 * 400 * c, 1e-15);

  // A root that sends to two sends one after the other.
  const Schedule tree = make_all_reduce("binary-tree", 3, 100);
  EXPECT_EQ(tree.phases.size(), 4U);
  EXPECT_NEAR(cost_of(tree, 4, {.within_host = {a, 0}}).seconds, 4 * a, 1e-15);
}

TEST(ScheduleCost, TellsLinksWithinHostsFromThoseBetween) {
  const Network network{
      .within_host = {0, 0}, .between_hosts = {1, 0}, .ranks_per_host = 4, .add_per_byte = 0};
  // Two hosts: a flat ring crosses between them in every phase, two levels only in the middle.
  const ScheduleCost flat = cost_of(make_all_reduce("ring", 8, 800), 4, network);
  const ScheduleCost levels =
      cost_of(make_two_level_schedule("ring", "recursive-doubling", 2, 4, 800), 4, network);
  EXPECT_EQ(flat.seconds, 14);
  EXPECT_EQ(levels.seconds, 1);
}

// --- what is written about them ------------------------------------------------------------------

TEST(ScheduleCost, IsAsDocumented) {
  std::ifstream document(RUBATO_ALGORITHMS_MD);
  const std::regex row(
      R"(\| ([a-z-]+(?::[a-z=0-9,-]+)?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|)");
  std::set<std::string> documented;
  for (std::string line; std::getline(document, line);) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    const std::string name = cells[1];
    documented.insert(name.substr(0, name.find(':')));
    const ScheduleCost cost = cost_of(make_all_reduce(name, std::stoi(cells[2]), 6720), 4);
    EXPECT_EQ(fmt::format("| {} | {} | {} | {} | {} | {} | {} |", name, cells[2].str(), cost.phases,
                          cost.messages, cost.bytes, cost.most_bytes_of_a_rank, cost.depth),
              line);
  }
  EXPECT_EQ(documented.size(), algorithm_names().size()) << "every algorithm has its lines";
}

}  // namespace
}  // namespace rubato
