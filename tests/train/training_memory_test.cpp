#include <gmock/gmock.h>

#include "loop/train/step/step_choices.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr TrainingSizes kSizes{.parameters = 1000,
                               .buffers = 24,
                               .sample_bytes = 100,
                               .minibatch = 32,
                               .minibatches = 64,
                               .cores = 8,
                               .threads = 2,
                               .reducer = "tree",
                               .optimizer_values = 2};

TEST(TrainingMemory, IsWhatGrowsWithTheSizesAskedFor) {
  const TrainingMemory memory = memory_of(kSizes);
  EXPECT_EQ(memory.gradient_buffers, 6 + 2);
  EXPECT_EQ(memory.gradient_buffer_bytes, 4 * 1024);
  EXPECT_EQ(memory.optimizer_bytes, 2 * 4000);
  EXPECT_EQ(memory.thread_bytes, 2 * 32 * 100 + 2 * 4 * 24);
  EXPECT_EQ(memory.bytes(), 8 * 4096 + 8000 + 6400 + 192);
}

TEST(TrainingMemory, OfIdleThreadsIsTheirBuffersOnly) {
  TrainingSizes sizes = kSizes;
  sizes.threads = 100;
  EXPECT_EQ(memory_of(sizes).thread_bytes, 8 * 32 * 100 + 100 * 4 * 24);
  sizes.minibatches = 3;
  EXPECT_EQ(memory_of(sizes).thread_bytes, 3 * 32 * 100 + 100 * 4 * 24);
}

TEST(TrainingMemory, OfEveryLeafWhereTheReducerKeepsThem) {
  TrainingSizes sizes = kSizes;
  sizes.reducer = "sharded";
  sizes.value_bytes = 8;
  EXPECT_EQ(memory_of(sizes).gradient_buffers, 64);
  EXPECT_EQ(memory_of(sizes).gradient_buffer_bytes, 8 * 1024);
}

TEST(TrainingMemory, OfAHostIsThatOfItsSubtreesAndItsMessages) {
  TrainingSizes sizes = kSizes;
  sizes.reducer = "sharded";
  sizes.host = HostLoad{.most_leaves = 16, .cores = 1, .bytes = 5e4};
  const TrainingMemory memory = memory_of(sizes);
  EXPECT_EQ(memory.gradient_buffers, 16) << "of the 64 that all hosts sum";
  EXPECT_EQ(memory.thread_bytes, 1 * 32 * 100 + 2 * 4 * 24) << "one thread is busy";
  EXPECT_EQ(memory.host_bytes, 5e4);
  EXPECT_EQ(memory.bytes(), 16 * 4096 + 8000 + 3200 + 192 + 5e4);
  // One that has no part of the step.
  sizes.host->most_leaves = 0;
  EXPECT_EQ(memory_of(sizes).gradient_buffers, 1);
}

// A reducer that suits the whole step is taken for a host's part of it, too.
TEST(TrainingMemory, OfAHostKnowsWhatAutoStandsFor) {
  // 32 leaves are 2 GiB, and 16 one.
  TrainingSizes sizes{.parameters = std::size_t{1} << 24,
                      .minibatches = 32,
                      .cores = 2,
                      .host = HostLoad{.most_leaves = 16, .cores = 1}};
  EXPECT_EQ(memory_of(sizes).gradient_buffers, 5) << "chunked-tree";
  sizes.minibatches = 16;
  EXPECT_EQ(memory_of(sizes).gradient_buffers, 16) << "sharded";
}

TEST(TrainingMemory, CountsWhatOnlySomeTrainingsKeep) {
  TrainingSizes sizes = kSizes;
  sizes.gradient_pair = true;
  sizes.metric = true;
  sizes.objective_bytes = 4000;
  sizes.copies_state = true;
  const TrainingMemory memory = memory_of(sizes);
  EXPECT_EQ(memory.metric_bytes, 4000);
  EXPECT_EQ(memory.pair_bytes, 2 * 4000);
  EXPECT_EQ(memory.objective_bytes, 4000);
  EXPECT_EQ(memory.copy_bytes, 4 * (1000 + 24) + 2 * 4000);
  EXPECT_EQ(memory.bytes(), memory_of(kSizes).bytes() + 16000 + 12096);
  sizes.host = HostLoad{.most_leaves = 16, .cores = 8, .bytes = 30e3};
  EXPECT_THAT(
      error_of([&] { require_training_memory(sizes, {.bytes = 40e3, .what = "physical memory"}); }),
      HasSubstr("8 kB for the optimizer, 4 kB for the optimizer's metric, 8 kB for the "
                "gradients of two steps, "
                "12.1 kB for a copy of the state during tests, "
                "4 kB for the objective's own copies, 30 kB for messages between "
                "hosts and 6.59 kB for 2 threads"));
}

TEST(TrainingMemory, HasSquaresInTheBuffersOnly) {
  TrainingSizes sizes = kSizes;
  sizes.copies_state = true;
  const TrainingMemory without = memory_of(sizes);
  sizes.squares = sizes.parameters;
  const TrainingMemory memory = memory_of(sizes);
  EXPECT_EQ(memory.gradient_buffer_bytes, 4 * 2024);
  EXPECT_EQ(memory.bytes() - without.bytes(),
            static_cast<double>(memory.gradient_buffers) * 4 * 1000);
}

TEST(TrainingMemory, ThatCannotFitIsRefusedWithTheNumbers) {
  const MemoryLimit limit{.bytes = 40e3, .what = "physical memory"};
  EXPECT_EQ(error_of([&] { require_training_memory(kSizes, {.bytes = 50e3, .what = ""}); }),
            "no error");
  EXPECT_EQ(error_of([&] { require_training_memory(kSizes, limit); }),
            "training needs 8 gradient buffers of 4.1 kB (64 minibatches in a step, reducer tree), "
            "8 kB for the optimizer and 6.59 kB for 2 threads with minibatches of 32, together "
            "47.4 kB, and physical memory is 40 kB; smaller minibatches or steps, fewer threads or "
            "the reducer tree need less");
}

TEST(TrainingMemory, CountsAddressesForOpenBlasWhereTheyAreLimited) {
  TrainingSizes sizes = kSizes;
  sizes.openblas = true;
  EXPECT_EQ(memory_of(sizes).blas_addresses, 2 * 160e6);
  EXPECT_EQ(memory_of(sizes).bytes(), memory_of(kSizes).bytes());
  MemoryLimit limit{.bytes = 300e6, .what = "what ulimit -v leaves"};
  EXPECT_EQ(error_of([&] { require_training_memory(sizes, limit); }), "no error");
  limit.of_addresses = true;
  EXPECT_THAT(error_of([&] { require_training_memory(sizes, limit); }),
              AllOf(HasSubstr("320 MB of addresses for OpenBLAS"),
                    HasSubstr("what ulimit -v leaves is 300 MB")));
}

}  // namespace
}  // namespace rubato
