// Which minibatches an evaluator computes in one pass, by what it is asked for.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/testing.hpp>

#include "support/matchers.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

// A minibatch as it is given to an evaluator.
struct Given {
  std::int64_t minibatch = 0;
  std::int64_t core = 0;
  std::int64_t substep = 0;

  friend bool operator==(const Given&, const Given&) = default;
};

using Pass = std::vector<Given>;

// Keeps the passes of all evaluators.
class Passes {
 public:
  void add(std::span<const Minibatch> minibatches) {
    Pass pass;
    for (const Minibatch& of : minibatches) {
      pass.push_back({of.stream.minibatch, of.core.value(), of.substep});
    }
    const std::lock_guard lock(mutex_);
    passes_.push_back(std::move(pass));
  }
  // By their first minibatches.
  [[nodiscard]] std::vector<Pass> sorted() const {
    std::vector<Pass> all = passes_;
    std::ranges::sort(all, {}, [](const Pass& pass) { return pass.front().minibatch; });
    return all;
  }
  [[nodiscard]] std::size_t longest() const {
    return std::ranges::max(passes_, {}, [](const Pass& pass) { return pass.size(); }).size();
  }

 private:
  std::mutex mutex_;
  std::vector<Pass> passes_;
};

// Computes several minibatches one after the other, and adds them in the order of the tree.
class SeveralAtOnce final : public test::Around {
 public:
  explicit SeveralAtOnce(std::shared_ptr<Passes> passes) : passes_(std::move(passes)) {}

  std::int64_t minibatches_at_once(std::int64_t) const override { return 32; }
  std::unique_ptr<Evaluator<double>> make_evaluator() override {
    return std::make_unique<Adding>(inner().make_evaluator(), passes_);
  }

 private:
  class Adding final : public Evaluator<double> {
   public:
    Adding(std::unique_ptr<Evaluator<double>> inner, std::shared_ptr<Passes> passes)
        : inner_(std::move(inner)), passes_(std::move(passes)) {}
    double evaluate(const Minibatch& minibatch, const Leaf<double>& leaf,
                    EvaluatorProgress& progress) override {
      passes_->add({&minibatch, 1});
      return inner_->evaluate(minibatch, leaf, progress);
    }
    void evaluate_several(std::span<const Minibatch> minibatches, const Leaf<double>& leaf,
                          std::span<double> losses, EvaluatorProgress& progress) override {
      passes_->add(minibatches);
      const std::size_t gradient = leaf.gradient.size();
      std::vector<std::vector<double>> sums;
      for (std::size_t i = 0; i < minibatches.size(); ++i) {
        std::vector<double>& sum = sums.emplace_back(gradient + leaf.averaged.size());
        losses[i] = inner_->evaluate(minibatches[i],
                                     {.gradient = std::span(sum).first(gradient),
                                      .averaged = std::span(sum).subspan(gradient)},
                                     progress);
      }
      for (std::size_t width = 1; width < sums.size(); width *= 2) {
        for (std::size_t i = 0; i + width < sums.size(); i += 2 * width) {
          std::ranges::transform(sums[i], sums[i + width], sums[i].begin(), std::plus<>());
        }
      }
      std::copy_n(sums[0].begin(), gradient, leaf.gradient.begin());
      std::copy(sums[0].begin() + static_cast<std::ptrdiff_t>(gradient), sums[0].end(),
                leaf.averaged.begin());
    }

   private:
    std::unique_ptr<Evaluator<double>> inner_;
    std::shared_ptr<Passes> passes_;
  };

  std::shared_ptr<Passes> passes_;
};

struct InPasses {
  std::shared_ptr<Passes> passes;
  Trainer trainer;
};

// A step of seven minibatches on four cores, the last of which has one, and on two threads.
InPasses train_in_passes(const std::function<void(TrainOptions&)>& change = {}) {
  TrainOptions options{.epochs = 1, .minibatch_size = 4, .cores = 4, .threads = 2};
  if (change) change(options);
  auto passes = std::make_shared<Passes>();
  InPasses result{.passes = passes,
                  .trainer = Trainer(std::make_unique<SeveralAtOnce>(passes),
                                     test::trace_of({28}, TraceEnd::stop), options)};
  result.trainer.fit();
  return result;
}

TEST(Passes, SpanNeighbouringCores) {
  const Pass first{{0, 0, 0}, {1, 0, 1}, {2, 1, 0}, {3, 1, 1}};
  const Pass second{{4, 2, 0}, {5, 2, 1}, {6, 3, 0}};
  Pass all = first;
  all.insert(all.end(), second.begin(), second.end());
  EXPECT_THAT(train_in_passes().passes->sorted(), ElementsAre(first, second))
      << "one for each thread";
  EXPECT_THAT(train_in_passes([](auto& o) { o.threads = 1; }).passes->sorted(), ElementsAre(all));
}

TEST(Passes, AreOfOneMinibatchWhereEachHasToBeSeen) {
  const auto longest = [](const std::function<void(TrainOptions&)>& change) {
    return train_in_passes(change).passes->longest();
  };
  EXPECT_GT(longest({}), 1);
  EXPECT_EQ(longest([](auto& o) { o.log_minibatches = true; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.log_noise = true; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.rule = "adascale"; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.dealing = Dealing::in_turns; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.reduce = "sharded"; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.assignment = Assignment::strided; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.faults.rate = 0.01; }), 1);
  EXPECT_EQ(longest([](auto& o) { o.stragglers = {{.core = CoreRank{1}, .factor = 1.01}}; }), 1);
  EXPECT_EQ(
      longest([](auto& o) { o.optimizer = parse_optimizer("adam:second-moment=minibatch", {}); }),
      1);
}

TEST(Passes, ChangeNoBit) {
  const InPasses one_by_one = train_in_passes([](auto& o) {
    o.log_minibatches = true;
    // As many threads as any, because none has more than another trainer that lives.
    o.threads = 7;
  });
  for (const int threads : {1, 2, 3, 7}) {
    for (std::int64_t cores = 1; cores <= 9; ++cores) {
      const InPasses several = train_in_passes([&](auto& o) {
        o.threads = threads;
        o.cores = cores;
      });
      EXPECT_EQ(test::difference_of(several.trainer, one_by_one.trainer), std::nullopt)
          << threads << " threads, " << cores << " cores";
    }
  }
}

}  // namespace
}  // namespace rubato
