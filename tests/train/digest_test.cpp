// The digest of a step: the same whoever computes it, and another for every bit that counts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/digest.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/loop/verify.hpp>
#include <rubato/testing.hpp>

#include "loop/train/step/state_digest.hpp"
#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/around.hpp"
#include "train/hosted.hpp"
#include "train/plug_points.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;
using testing::Ne;

using Digests = std::vector<std::optional<Digest>>;

// The options of trainings with running means, momentum and Lookahead: all that a digest has.
TrainOptions digest_options() {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.1,
          .reference_batch_size = 8,
          .optimizer = {.momentum = 0.5},
          .lookahead = LookaheadOptions{.k = 2},
          .ema_half_life = 20,
          .digest_every = 1,
          .cores = 3,
          .threads = 2};
}

Trainer tiny_trainer(const TrainOptions& options) {
  return Trainer(tiny_objective(), trace_of({8, 16, 4}), options);
}

Digests digests_of(const test::Recorder& recorder) {
  Digests digests;
  for (const StepRecord& step : recorder.steps) digests.push_back(step.digest);
  return digests;
}

struct Trained {
  Digests steps;
  std::optional<Digest> chain;

  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained trained(Trainer trainer) {
  const auto recorder = test::recorded(trainer);
  return {.steps = digests_of(*recorder), .chain = trainer.result().digest};
}

Trained trained(const TrainOptions& options) {
  return trained(tiny_trainer(options));
}

std::optional<Digest> chain_of(const Digests& digests) {
  Digest chain;
  for (const std::optional<Digest>& digest : digests) {
    if (digest) chain = chained(chain, *digest);
  }
  return chain == Digest() ? std::nullopt : std::optional(chain);
}

TEST(StepDigest, IsTheSameWhoeverComputes) {
  const Trained expected = trained(digest_options());
  ASSERT_GT(expected.steps.size(), 5U);
  EXPECT_THAT(expected.steps, Each(Ne(std::nullopt)));
  EXPECT_EQ(expected.chain, chain_of(expected.steps));
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 2, 7, 1000}) {
      for (const char* const reduce : {"tree", "chunked-tree", "sharded"}) {
        for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
          TrainOptions options = digest_options();
          options.threads = threads;
          options.cores = cores;
          options.reduce = reduce;
          options.assignment = assignment;
          EXPECT_EQ(trained(options), expected)
              << threads << " threads, " << cores << " cores, " << reduce;
        }
      }
    }
  }
}

// The array is large enough that several threads hash its chunks.
TEST(StepDigest, OfManyChunksIsTheSameOnAnyThreads) {
  const auto of_threads = [](int threads) {
    TrainOptions options = digest_options();
    options.learning_rate = 0.001;
    options.threads = threads;
    return trained(Trainer(noisy_quadratic<float>({.dim = 100'003, .condition = 10, .samples = 64}),
                           trace_of({16}), options));
  };
  const Trained expected = of_threads(1);
  EXPECT_EQ(expected.steps.size(), 8U);
  EXPECT_EQ(of_threads(2), expected);
  EXPECT_EQ(of_threads(4), expected);
}

TEST(StepDigest, IsTheSameOnSeveralHosts) {
  const auto make = [](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = digest_options();
    options.hosts = std::move(hosts);
    return std::make_unique<Trainer>(tiny_trainer(options));
  };
  const Trained expected = trained(digest_options());
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {1, 5, 2}}) {
    const test::Hosted hosted = test::train_on(weights, make);
    for (std::size_t host = 0; host < weights.size(); ++host) {
      ASSERT_EQ(hosted.errors[host], "no error");
      EXPECT_EQ(digests_of(*hosted.recorders[host]), expected.steps);
      EXPECT_EQ(hosted.trainers[host]->result().digest, expected.chain);
    }
  }
}

TEST(StepDigest, DependsOnNothingThatIsOnlyMeasured) {
  const Trained expected = trained(digest_options());
  TrainOptions options = digest_options();
  options.log_noise = true;
  options.log_minibatches = true;
  options.mse = true;
  EXPECT_EQ(trained(options), expected);
  // Pairs of steps are measured then.
  const auto of_pairs = [](bool log_noise) {
    TrainOptions small = digest_options();
    small.log_noise = log_noise;
    return trained(Trainer(tiny_objective(), trace_of({4}), small));
  };
  EXPECT_EQ(of_pairs(true), of_pairs(false));
}

// A trainer that has taken some steps, and its recorder.
struct Begun {
  Trainer trainer;
  std::shared_ptr<test::Recorder> recorder;
};
Begun begun(const TrainOptions& options, std::size_t steps) {
  Begun run{.trainer = tiny_trainer(options), .recorder = {}};
  run.recorder = run.trainer.add_observer<test::Recorder>(
      [steps, done = std::size_t{0}](Training& training, const StepRecord&) mutable {
        if (++done == steps) training.pause();
      });
  run.trainer.fit();
  return run;
}

TEST(StepDigest, IsTheSameAfterAResume) {
  TrainOptions options = digest_options();
  options.digest_every = 2;
  const Trained expected = trained(options);
  for (std::size_t steps = 1; steps < expected.steps.size(); ++steps) {
    const Begun first = begun(options, steps);
    Digests digests = digests_of(*first.recorder);
    TrainOptions other = options;
    other.threads = 1;
    other.cores = 5;
    Trainer second = tiny_trainer(other);
    const auto recorder = second.add_observer<test::Recorder>();
    second.load_state(parse_state(state_bytes(first.trainer.state()), "the state"));
    EXPECT_EQ(second.result().digest, chain_of(digests)) << steps;
    second.fit();
    for (const auto& digest : digests_of(*recorder)) digests.push_back(digest);
    EXPECT_EQ(digests, expected.steps) << steps;
    EXPECT_EQ(second.result().digest, expected.chain) << steps;
  }
}

TEST(StepDigest, IsComputedWhereItIsAskedFor) {
  TrainOptions options = digest_options();
  const Trained all = trained(options);
  options.digest_every = 3;
  const Trained some = trained(options);
  ASSERT_EQ(some.steps.size(), all.steps.size());
  for (std::size_t i = 0; i < all.steps.size(); ++i) {
    EXPECT_EQ(some.steps[i], (i + 1) % 3 == 0 ? all.steps[i] : std::nullopt) << i;
  }
  EXPECT_EQ(some.chain, chain_of(some.steps));
  options.digest_every = 0;
  const Trained none = trained(options);
  EXPECT_THAT(none.steps, Each(std::nullopt));
  EXPECT_EQ(none.chain, std::nullopt);
  options.digest_every = -1;
  EXPECT_THAT(error_of([&] { tiny_trainer(options); }), HasSubstr("-1 steps between two digests"));
}

// A state with other bytes in one of its arrays.
State with_other_bytes(const State& state, const std::string& name,
                       const std::function<void(StateArray&)>& change) {
  return test::with_changes(state, [&](const std::string& entry, StateArray& array) {
    if (entry == name) change(array);
    return true;
  });
}

// Flips bits of each of these entries in the state after the fourth step: the fifth has another
// digest each time.
void expect_changes(const TrainOptions& options, const std::vector<std::string>& names) {
  const Begun first = begun(options, 4);
  const State good = first.trainer.state();
  const auto fifth = [&](const State& state) {
    Trainer second = tiny_trainer(options);
    const auto recorder = second.add_observer<test::Recorder>(
        [](Training& training, const StepRecord&) { training.pause(); });
    second.load_state(state);
    second.fit();
    return recorder->steps.front().digest;
  };
  const std::optional<Digest> expected = fifth(good);
  for (const std::string& name : names) {
    const State changed = with_other_bytes(good, name, [](StateArray& array) {
      // The first bit behind the point of each number, which no rounding takes back; the last one
      // of a count.
      const bool counts = array.type == ElementType::i64;
      for (std::size_t at = counts ? 0 : 6; at < array.bytes.size(); at += 8) {
        array.bytes[at] = static_cast<char>(array.bytes[at] ^ (counts ? 1 : 8));
      }
    });
    ASSERT_NE(changed, good) << name;
    EXPECT_NE(fifth(changed), expected) << name;
  }
}

TEST(StepDigest, ChangesWithEveryBit) {
  expect_changes(digest_options(), {"parameter.weight", "parameter.bias", "buffer.mean",
                                    "optimizer.velocity", "lookahead.slow", "ema.weights"});
  TrainOptions options = digest_options();
  options.lookahead.reset();
  options.optimizer = parse_optimizer("adam", {});
  options.gradient_transforms = {test::largest_only(1)};
  expect_changes(options,
                 {"optimizer.adam.steps", "optimizer.adam.mean", "transform/largest 1/left"});
}

// It covers buffers that no weight depends on, too.
TEST(StepDigest, IsThatOfTheWholeState) {
  const Begun run = begun(digest_options(), 4);
  const State state = run.trainer.state();
  const Digest digest = digest_of_state(state);
  EXPECT_EQ(run.recorder->steps.back().digest, digest);
  for (const char* const name : {"parameter.weight", "buffer.mean"}) {
    const State changed = with_other_bytes(state, name, [](StateArray& array) {
      array.bytes.front() = static_cast<char>(array.bytes.front() ^ 1);
    });
    EXPECT_NE(digest_of_state(changed), digest) << name;
  }
}

TEST(StepDigest, HasTheMemoryOfAnOptimizerOfTheUsersOwn) {
  std::vector<double> memory{1, 2};
  class Remembering final : public FlatOptimizer<double> {
   public:
    explicit Remembering(std::vector<double>& memory) : memory_(memory) {}
    void step(const Update<double>&, Workers&) override {}
    void visit_state(StateVisitor& state) override {
      // A copy, which is gone after the call.
      std::vector<double> copy = memory_;
      state.list("memory", copy);
    }

   private:
    std::vector<double>& memory_;
  };
  TrainOptions options = digest_options();
  options.lookahead.reset();
  options.optimizer = {};
  options.own_optimizer.of_double = [&memory](const OptimizerParts&) {
    return std::make_unique<Remembering>(memory);
  };
  const Trained first = trained(options);
  EXPECT_EQ(trained(options), first);
  memory[1] = 2.5;
  EXPECT_NE(trained(options).steps, first.steps);
}

// An optimizer that remembers something that changes no weight.
TEST(StepDigest, ShowsVerifyWhatAnOptimizerRemembers) {
  class Counting final : public FlatOptimizer<double> {
   public:
    void step(const Update<double>&, Workers& workers) override { seen_ += workers.threads(); }
    void visit_state(StateVisitor& state) override { state.count("seen", seen_); }

   private:
    std::int64_t seen_ = 0;
  };
  const auto make = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = digest_options();
    options.digest_every = 0;
    options.lookahead.reset();
    options.optimizer = {};
    options.own_optimizer.of_double = [](const OptimizerParts&) {
      return std::make_unique<Counting>();
    };
    change(options);
    return tiny_trainer(options);
  };
  Verification verification(make, 4);
  EXPECT_EQ(verification.train({.what = "one core"}).difference, std::nullopt);
  EXPECT_EQ(verification.train({.what = "three cores", .cores = 3}).difference, std::nullopt);
  EXPECT_EQ(verification.train({.what = "two threads", .cores = 3, .threads = 2}).difference,
            "differs first after step 1 in the optimizer's state");
}

TEST(StepDigest, IsThatOfTheStateBeforeWhereAStepIsSkipped) {
  TrainOptions options = digest_options();
  options.epochs = 1;
  const auto weighted = [](Evaluator<double>& inner, const Minibatch& minibatch,
                           const Leaf<double>& leaf, EvaluatorProgress& progress) {
    const double loss = inner.evaluate(minibatch, leaf, progress);
    *leaf.weight = 0;
    return loss;
  };
  Trainer trainer(std::make_unique<test::Around>(weighted), trace_of({8}), options);
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(recorder->steps.size(), 6U);
  EXPECT_TRUE(recorder->steps.front().skipped);
  EXPECT_TRUE(recorder->steps.front().digest.has_value());
  EXPECT_THAT(digests_of(*recorder), Each(recorder->steps.front().digest));
}

// States of older versions have no chain, which then stays unknown.
TEST(ChainOfDigests, IsUnknownAfterAStateWithoutOne) {
  const TrainOptions options = digest_options();
  const State with = begun(options, 2).trainer.state();
  const auto is_older = [](const std::string& entry, const auto&) {
    return !entry.starts_with("digest.");
  };
  const State without = test::with_changes(with, is_older, is_older);
  ASSERT_EQ(with.arrays().size(), without.arrays().size() + 1);
  Trainer second = tiny_trainer(options);
  const auto recorder = second.add_observer<test::Recorder>();
  second.load_state(without);
  EXPECT_EQ(second.state(), without) << "as it was";
  second.fit();
  EXPECT_TRUE(recorder->steps.front().digest.has_value());
  EXPECT_EQ(second.result().digest, std::nullopt);
  Trainer third = tiny_trainer(options);
  third.load_state(second.state());
  EXPECT_EQ(third.result().digest, std::nullopt);
}

TEST(ChainOfDigests, GoesOnWithTheSameIntervalOnly) {
  TrainOptions options = digest_options();
  const State state = begun(options, 2).trainer.state();
  for (const std::int64_t every : {0, 2}) {
    options.digest_every = every;
    Trainer other = tiny_trainer(options);
    EXPECT_THAT(error_of([&] { other.load_state(state); }),
                HasSubstr("of a training with digest_every 1, not " + std::to_string(every)));
  }
}

TEST(ChainOfDigests, IsRefusedWhereItIsDamaged) {
  const TrainOptions options = digest_options();
  const State good = begun(options, 2).trainer.state();
  const State damaged = test::with_changes(
      good, [](const auto&, const auto&) { return true; },
      [](const std::string& entry, std::string& text) {
        if (entry == "digest.chain") text = "no digest";
        return true;
      });
  Trainer other = tiny_trainer(options);
  EXPECT_THAT(error_of([&] { other.load_state(damaged); }),
              HasSubstr("the state's 'digest.chain': 'no digest' is not a digest"));
}

// Digests of arrays, on their own.

Digest digest_of(const std::vector<std::pair<std::string, std::string>>& entries, int threads = 1) {
  Workers workers(threads);
  StateDigest digest(workers);
  for (const auto& [name, bytes] : entries) digest.add(name, std::as_bytes(std::span(bytes)));
  return digest.finish();
}

TEST(StateDigest, DependsOnNamesAndBytesAlone) {
  const Digest expected = digest_of({{"a", "123"}, {"b", ""}});
  EXPECT_EQ(digest_of({{"b", ""}, {"a", "123"}}), expected) << "in any order";
  EXPECT_NE(digest_of({{"a", "124"}, {"b", ""}}), expected);
  EXPECT_NE(digest_of({{"a", ""}, {"b", "123"}}), expected);
  EXPECT_NE(digest_of({{"a", "123"}}), expected);
  EXPECT_NE(digest_of({{"a", "123"}, {"c", ""}}), expected);
  EXPECT_NE(digest_of({{"a", "12"}, {"b", "3"}}), expected);
}

TEST(StateDigest, SeesEveryBitOfEveryChunk) {
  constexpr std::size_t kChunk = StateDigest::kChunk;
  for (const std::size_t size : {kChunk - 1, kChunk, kChunk + 1, 5 * kChunk + 3}) {
    std::string bytes(size, 'x');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i);
    const Digest expected = digest_of({{"a", bytes}});
    EXPECT_EQ(digest_of({{"a", bytes}}, 4), expected);
    for (const std::size_t at : {std::size_t{0}, size / 2, kChunk - 2, size - 1}) {
      std::string changed = bytes;
      changed[at] ^= 1;
      EXPECT_NE(digest_of({{"a", changed}}), expected) << size << " " << at;
    }
    EXPECT_NE(digest_of({{"a", bytes + '\0'}}), expected);
  }
}

// The format, which others may compute, too.
TEST(StateDigest, IsThatOfAListOfChunks) {
  const std::string bytes(StateDigest::kChunk + 2, 'x');
  std::string list;
  const auto number = [&list](std::uint64_t value) {
    list.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  number(4);
  list += "name";
  number(bytes.size());
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  for (const auto chunk : {all.first(StateDigest::kChunk), all.subspan(StateDigest::kChunk)}) {
    const Digest digest = rubato::digest_of(chunk);
    number(digest.high);
    number(digest.low);
  }
  EXPECT_EQ(digest_of({{"name", bytes}}), rubato::digest_of(std::as_bytes(std::span(list))));
}

}  // namespace
}  // namespace rubato
