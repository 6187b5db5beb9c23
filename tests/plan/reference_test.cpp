#include "plan/reference.hpp"

#include <gtest/gtest.h>

#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {
namespace {

test::RankWork work_of(const EpochPlan& epoch, const EpochSamples& samples, CoreRank core) {
  test::RankWork work;
  for (const StepPlan& step : epoch.steps) {
    const MinibatchRun run = step.share_of(core, Assignment::strided);
    std::vector<std::int64_t> minibatches;
    for (std::int64_t i = 0; i < run.count; ++i) {
      minibatches.push_back(run[i].value());
      const auto indices = samples.minibatch(run[i]);
      work.indices.emplace_back(indices.begin(), indices.end());
    }
    work.assignments.push_back(std::move(minibatches));
  }
  return work;
}

void expect_epoch(const EpochPlan& epoch, const nlohmann::json& reference,
                  const nlohmann::json& partition) {
  SCOPED_TRACE(reference.at("epoch"));
  EXPECT_EQ(epoch.index.value(), reference.at("epoch").get<std::int64_t>());
  EXPECT_EQ(nlohmann::json({epoch.first_step().value(), epoch.end_step().value()}),
            reference.at("trace_range"));
  std::vector<std::int64_t> batch_sizes;
  for (const StepPlan& step : epoch.steps) batch_sizes.push_back(step.batch_size);
  if (reference.contains("epochtrace")) {
    EXPECT_EQ(nlohmann::json(batch_sizes), reference.at("epochtrace"));
  }

  const EpochSamples samples(partition.at("dataset_size"), partition.at("minibatch_size"),
                             partition.at("seed"), epoch.index);
  for (const auto& rank : reference.at("ranks")) {
    SCOPED_TRACE(rank.at("rank"));
    EXPECT_EQ(test::difference(work_of(epoch, samples, CoreRank{rank.at("rank")}), rank,
                               partition.at("minibatch_size")),
              "");
  }
}

// The original's max_epoch divides the samples of the trace by those of a full epoch. As epochs are
// seldom full, that is a lower bound of the epochs that the trace holds, not their number.
void expect_max_epoch(const Planner& planner, std::int64_t max_epoch) {
  std::int64_t samples = 0;
  for (const TraceStep& step : planner.trace().steps()) samples += step.batch_size;
  EXPECT_EQ(samples / (planner.minibatches_per_epoch() * planner.options().minibatch_size),
            max_epoch);
  EXPECT_GE(extent_of(planner).epochs, max_epoch);
}

TEST(PartitionReference, EveryIntegerAndHash) {
  const nlohmann::json partitions = test::partition_reference();
  if (partitions.is_null()) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/partition.json";
  ASSERT_FALSE(partitions.empty());
  for (const auto& partition : partitions) {
    SCOPED_TRACE(partition.at("name"));
    Planner planner(test::reference_trace(partition),
                    {.dataset_size = partition.at("dataset_size"),
                     .minibatch_size = partition.at("minibatch_size"),
                     .cores = partition.at("num_replicas")});
    EXPECT_EQ(planner.minibatches_per_epoch(),
              partition.at("minibatches_per_epoch").get<std::int64_t>());
    expect_max_epoch(planner, partition.at("max_epoch"));
    for (const auto& reference : partition.at("epochs")) {
      const std::optional<EpochPlan> epoch = planner.next();
      ASSERT_TRUE(epoch.has_value());
      expect_epoch(*epoch, reference, partition);
    }
  }
}

}  // namespace
}  // namespace rubato
