// Several hosts train what one does.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/rule_options.hpp"
#include "train/around.hpp"
#include "train/hosted.hpp"

namespace rubato {
namespace {

using test::expect_bits;
using test::Hosted;
using test::MakeHosted;
using test::train_on;

TrainOptions hosted_options(const std::string& reduce = "tree") {
  return {.epochs = 2,
          .minibatch_size = 2,
          .learning_rate = 0.02,
          .rule = "adascale",
          .optimizer = {.momentum = 0.9},
          .rate_factors = {{"bias", 2}},
          .clip_norm = 0.5,
          .ema_half_life = 50,
          .cores = 5,
          .reduce = reduce,
          .threads = 2};
}

MakeHosted tiny_on(TrainOptions options) {
  return [options](std::shared_ptr<Hosts> hosts) {
    TrainOptions of_host = options;
    of_host.hosts = std::move(hosts);
    return std::make_unique<Trainer>(test::tiny_objective(),
                                     test::trace_of({2, 12, 32, 4, 46, 6, 26}), of_host);
  };
}

// All that does not say who computed what, or how long it took.
void expect_same_step(const StepRecord& one, const StepRecord& other) {
  EXPECT_EQ(one.loss, other.loss);
  EXPECT_EQ(one.gain, other.gain);
  EXPECT_EQ(one.learning_rate, other.learning_rate);
  EXPECT_EQ(one.gradient_norm, other.gradient_norm);
  EXPECT_EQ(one.plan.minibatches, other.plan.minibatches);
}

TEST(Hosts, ComeToTheBitsOfOne) {
  const auto alone = tiny_on(hosted_options())(nullptr);
  const auto recorder = alone->add_observer<test::Recorder>();
  alone->fit();
  for (const std::string reduce : {"tree", "chunked-tree", "sharded"}) {
    for (const std::vector<double>& weights :
         {std::vector<double>{1}, {1, 1}, {1, 5}, {2, 1, 1}, {1, 1, 1, 1, 1, 1, 1}}) {
      SCOPED_TRACE(reduce + " on " + std::to_string(weights.size()));
      const Hosted hosted = train_on(weights, tiny_on(hosted_options(reduce)));
      expect_bits(hosted, *alone);
      for (std::size_t host = 0; host < weights.size(); ++host) {
        ASSERT_EQ(hosted.recorders[host]->steps.size(), recorder->steps.size());
        double compute = 0;
        for (std::size_t i = 0; i < recorder->steps.size(); ++i) {
          expect_same_step(hosted.recorders[host]->steps[i], recorder->steps[i]);
          compute += hosted.recorders[host]->steps[i].seconds.compute;
        }
        EXPECT_GT(compute, 0);
      }
    }
  }
}

// The squares of minibatches travel with their gradients.
TEST(Hosts, ComeToTheBitsOfOneWithSquaresOfMinibatches) {
  TrainOptions options = hosted_options();
  options.optimizer = parse_optimizer("adamw:second-moment=minibatch", {.weight_decay = 0.1});
  const auto alone = tiny_on(options)(nullptr);
  alone->fit();
  for (const std::vector<double>& weights : {std::vector<double>{1, 5}, {2, 1, 1}}) {
    expect_bits(train_on(weights, tiny_on(options)), *alone);
  }
}

TEST(Hosts, FollowRulesThatAnswerMoreThanARate) {
  for (const test::RuleOptions& of : test::kRuleOptions) {
    SCOPED_TRACE(testing::Message() << of.rule << " " << of.optimizer << " " << of.memory << " "
                                    << of.on_batch_change);
    TrainOptions options = hosted_options();
    of.set(options);
    const auto alone = tiny_on(options)(nullptr);
    alone->fit();
    expect_bits(train_on({2, 1, 1}, tiny_on(options)), *alone);
  }
}

// Of enough parameters for parts that begin within the array, in both types.
template <class T>
MakeHosted quadratic_on(std::int64_t dim) {
  return [dim](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.learning_rate = 0.001;
    options.hosts = std::move(hosts);
    return std::make_unique<Trainer>(
        noisy_quadratic<T>({.dim = dim, .condition = 10, .noise = 1, .samples = 64}),
        test::trace_of({12, 32, 14}), options);
  };
}

template <class T>
void expect_quadratic_bits() {
  for (const std::int64_t dim : {2, 3, 10'007}) {
    const auto alone = quadratic_on<T>(dim)(nullptr);
    alone->fit();
    expect_bits(train_on({1, 2, 1}, quadratic_on<T>(dim)), *alone);
  }
}

TEST(Hosts, ExchangePartsOfManyValues) {
  expect_quadratic_bits<float>();
  expect_quadratic_bits<double>();
}

// Counts its minibatches, those of other hosts included.
class Counting final : public test::Around {
 public:
  Counting()
      : Around([this](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
          ++own_;
          return inner.evaluate(minibatch, leaf, progress);
        }) {}
  void begin_minibatches(Workers& workers) override {
    static_cast<void>(workers);
    own_ = 0;
    others_ = 0;
  }
  std::size_t tally_bytes() const override { return sizeof(std::int64_t); }
  void put_tally(std::span<std::byte> tally) const override {
    const std::int64_t own = own_;
    std::ranges::copy(std::as_bytes(std::span(&own, 1)), tally.begin());
  }
  void add_tally(std::span<const std::byte> tally) override {
    std::int64_t other = 0;
    std::ranges::copy(tally, std::as_writable_bytes(std::span(&other, 1)).begin());
    others_ += other;
  }
  void move_averages(std::span<const double> sums, std::int64_t minibatches) override {
    inner().move_averages(sums, minibatches);
    EXPECT_EQ(own_ + others_, minibatches);
    applied_ += own_ + others_;
  }
  [[nodiscard]] std::int64_t applied() const { return applied_; }

 private:
  std::atomic<std::int64_t> own_{0};
  std::int64_t others_ = 0;
  std::int64_t applied_ = 0;
};

TEST(Hosts, TellEachOtherWhatTheirMinibatchesLeft) {
  const Hosted hosted = train_on({1, 2, 1}, [](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.hosts = std::move(hosts);
    return std::make_unique<Trainer>(std::make_unique<Counting>(), test::trace_of({2, 12, 32}),
                                     options);
  });
  for (std::size_t host = 0; host < 3; ++host) {
    ASSERT_EQ(hosted.errors[host], "no error");
    std::int64_t minibatches = 0;
    for (const StepRecord& step : hosted.recorders[host]->steps) {
      minibatches += step.plan.minibatches;
    }
    const auto& counting = dynamic_cast<const Counting&>(hosted.trainers[host]->objective());
    EXPECT_GT(minibatches, 0);
    EXPECT_EQ(counting.applied(), minibatches);
  }
}

// How many cores of each host are busy.
std::map<int, std::size_t> busy_cores(const std::vector<double>& weights, const Trace& trace) {
  std::mutex mutex;
  std::map<int, std::set<CoreRank>> cores;
  const Hosted hosted = train_on(weights, [&](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.cores = 8;
    options.on_span = [&, rank = hosts->rank()](const Span& span) {
      const std::lock_guard lock(mutex);
      if (span.core) cores[rank].insert(*span.core);
    };
    options.hosts = std::move(hosts);
    return std::make_unique<Trainer>(test::tiny_objective(), trace, options);
  });
  for (const std::string& error : hosted.errors) EXPECT_EQ(error, "no error");
  std::map<int, std::size_t> counts;
  for (const auto& [rank, busy] : cores) counts[rank] = busy.size();
  return counts;
}

Trace hosted_trace(const std::vector<std::int64_t>& host_cores) {
  const std::int64_t cores = std::accumulate(host_cores.begin(), host_cores.end(), std::int64_t{0});
  return {{{.batch_size = 32, .cores = cores, .host_cores = host_cores}}, TraceEnd::hold, "made"};
}

// The first of two hosts waits for the second, which dawdles after each step.
TEST(Hosts, MeasureTheExchangeAndItsWaiting) {
  constexpr std::chrono::milliseconds kDawdle{5};
  const Hosted hosted = train_on({1, 1}, [&](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.on_span = [kDawdle, rank = hosts->rank()](const Span& span) {
      if (rank == 1 && span.activity == Activity::update) std::this_thread::sleep_for(kDawdle);
    };
    return tiny_on(options)(std::move(hosts));
  });
  const auto exchange_of = [](const test::Recorder& recorder) {
    double seconds = 0;
    for (const StepRecord& step : recorder.steps) {
      EXPECT_TRUE(step.seconds.exchange.has_value());
      EXPECT_LE(step.seconds.exchange.value_or(0) + step.seconds.update, step.seconds.wall + 1e-6);
      seconds += step.seconds.exchange.value_or(0);
    }
    return seconds;
  };
  const double dawdled = std::chrono::duration<double>(kDawdle).count() *
                         static_cast<double>(hosted.recorders[0]->steps.size() - 1);
  EXPECT_GE(exchange_of(*hosted.recorders[0]), dawdled / 2);
  EXPECT_GT(exchange_of(*hosted.recorders[1]), 0);

  const auto alone = tiny_on(hosted_options())(nullptr);
  const auto recorder = alone->add_observer<test::Recorder>();
  alone->fit();
  for (const StepRecord& step : recorder->steps) EXPECT_FALSE(step.seconds.exchange);
}

TEST(Hosts, ShareOutTheCores) {
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(busy_cores({3, 1}, test::trace_of({32})), ElementsAre(Pair(0, 6), Pair(1, 2)));
  EXPECT_THAT(busy_cores({1, 1}, hosted_trace({5, 3})), ElementsAre(Pair(0, 5), Pair(1, 3)));
  EXPECT_THAT(busy_cores({1, 1, 1}, hosted_trace({0, 3})), ElementsAre(Pair(1, 3)))
      << "nothing for the first, and for the third, which it does not name";
  EXPECT_THAT(busy_cores({1, 1}, hosted_trace({5, 1, 2})), ElementsAre(Pair(0, 4), Pair(1, 4)))
      << "of three hosts, and there are two";
}

TEST(Hosts, WithTheCoresOfATraceComeToTheBitsOfOne) {
  const auto make = [](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.hosts = std::move(hosts);
    return std::make_unique<Trainer>(test::tiny_objective(),
                                     Trace({{.batch_size = 2, .cores = 3, .host_cores = {0, 3}},
                                            {.batch_size = 32, .cores = 4, .host_cores = {4, 0}},
                                            {.batch_size = 46},
                                            {.batch_size = 26, .cores = 9, .host_cores = {1, 7, 1}},
                                            {.batch_size = 22, .cores = 2}},
                                           TraceEnd::cycle, "made"),
                                     options);
  };
  const auto alone = make(nullptr);
  alone->fit();
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {1, 1, 4}}) {
    expect_bits(train_on(weights, make), *alone);
  }
}

TEST(Hosts, GoOnInOtherNumbers) {
  const auto stopping = [&](std::shared_ptr<Hosts> hosts) {
    auto trainer = tiny_on(hosted_options())(std::move(hosts));
    trainer->add_observer<test::Recorder>([](Training& training, const StepRecord& step) {
      if (step.plan.index.value() == 2) training.pause();
    });
    return trainer;
  };
  const Hosted first = train_on({1, 1, 1}, stopping);
  ASSERT_EQ(first.errors[1], "no error");
  const State state = first.trainers[1]->state();
  const Hosted second = train_on({2, 1}, [&](std::shared_ptr<Hosts> hosts) {
    auto trainer = tiny_on(hosted_options())(std::move(hosts));
    trainer->load_state(state);
    return trainer;
  });
  ASSERT_EQ(second.errors[0], "no error");
  const auto whole = tiny_on(hosted_options())(nullptr);
  whole->fit();
  EXPECT_EQ(test::difference_of(*second.trainers[0], *whole), std::nullopt);
}

// Fails on one host; the others do not wait for ever, and keep the state before the step.
TEST(Hosts, ThatAreLostEndTraining) {
  const auto make = [](std::shared_ptr<Hosts> hosts) {
    const bool fails = hosts->rank() == 1;
    auto trainer = tiny_on(hosted_options())(std::move(hosts));
    trainer->add_observer<test::Recorder>([fails](Training&, const StepRecord& step) {
      if (fails && step.plan.index.value() == 1) throw Error("the disk is full");
    });
    return trainer;
  };
  std::vector<std::shared_ptr<Hosts>> hosts = test::emulated_hosts({1, 1});
  auto lost = make(std::move(hosts[1]));
  auto left = make(std::move(hosts[0]));
  std::thread other([&] {
    EXPECT_EQ(error_of([&] { lost->fit(); }), "the disk is full");
    lost.reset();
  });
  EXPECT_EQ(error_of([&] { left->fit(); }), "host 0 waits for host 1, which has gone");
  other.join();
  EXPECT_TRUE(left->has_state());
  EXPECT_EQ(left->result().steps, 2);
}

// It leaves something behind that no sum tells others of.
class OfOneHost final : public test::Around {
 public:
  std::string needs_one_host() const override { return "it counts its minibatches"; }
};

TEST(Hosts, RefuseWhatTheyDoNotExchange) {
  const auto error = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = hosted_options();
    change(options);
    return error_of([&] { return tiny_on(options)(test::emulated_hosts({1, 1})[0]); });
  };
  EXPECT_EQ(error([](TrainOptions& o) { o.faults.rate = 0.1; }),
            "cores that die on several hosts; accepted: on one host");
  EXPECT_EQ(error([](TrainOptions& o) { o.log_minibatches = true; }),
            "a record of every minibatch on several hosts; accepted: on one host");
  const auto error_of_fit = [](std::shared_ptr<Hosts> hosts) {
    TrainOptions options = hosted_options();
    options.hosts = std::move(hosts);
    Trainer trainer(std::make_unique<OfOneHost>(), test::trace_of({32}), options);
    return error_of([&] { trainer.fit(); });
  };
  EXPECT_EQ(error_of_fit(test::emulated_hosts({1, 1})[0]),
            "it counts its minibatches; accepted: on one host");
  EXPECT_EQ(error_of_fit(test::emulated_hosts({1})[0]), "no error");
  EXPECT_EQ(error_of([] {
              return tiny_on(hosted_options())(test::emulated_hosts({1, -1})[0]);
            }),
            "the weights of 2 hosts are [1, -1]; accepted: a number above 0 for each");
}

// Fails at the minibatch of that number, once.
std::unique_ptr<test::Around> failing_once(std::int64_t number) {
  const auto left = std::make_shared<std::atomic<std::int64_t>>(number);
  return std::make_unique<test::Around>(
      [left](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
        if (--*left == 0) throw Error("no more data");
        return inner.evaluate(minibatch, leaf, progress);
      });
}

// One host of those that come and go, to which happens what the test says.
class Unsteady final : public Hosts {
 public:
  // In the exchange of that number, from 1, a host is lost, or wants to come; 0 is never.
  std::int64_t lost_in = 0;
  std::int64_t comes_in = 0;
  std::int64_t done_by_others = 0;
  std::int64_t exchanges = 0;
  std::int64_t abandoned = 0;

  [[nodiscard]] int count() const override { return 1; }
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] bool elastic() const override { return true; }
  [[nodiscard]] std::int64_t generation() const override { return generation_; }
  [[nodiscard]] bool regroup_due() const override { return due_; }
  [[nodiscard]] std::int64_t steps_done() const override { return done_by_others; }
  void exchange(std::span<const std::span<const std::byte>> /*out*/,
                std::span<const std::span<std::byte>> /*in*/) override {
    ++exchanges;
    due_ = due_ || exchanges == lost_in || exchanges == comes_in;
    if (exchanges == lost_in) throw HostLost("host 1 is lost");
  }
  void abandon() noexcept override {
    Hosts::abandon();
    ++abandoned;
  }
  void regroup() {
    due_ = false;
    ++generation_;
  }

 private:
  std::int64_t generation_ = 0;
  bool due_ = false;
};

// A training on it, and the same alone.
class UnsteadyHosts : public testing::Test {
 protected:
  UnsteadyHosts() { alone_->fit(); }

  void expect_as_alone(Trainer& trainer) const {
    EXPECT_EQ(test::difference_of(trainer, *alone_), std::nullopt);
    EXPECT_EQ(trainer.result().steps, alone_->result().steps);
  }

  std::shared_ptr<Unsteady> hosts_ = std::make_shared<Unsteady>();
  std::unique_ptr<Trainer> alone_ = tiny_on(hosted_options())(nullptr);
  std::unique_ptr<Trainer> trainer_ = tiny_on(hosted_options())(hosts_);
};

// Of a step: of its one subtree, of the parts' sums, and of their squares.
constexpr std::int64_t kExchanges = 3;

TEST_F(UnsteadyHosts, PauseTrainingWhereOneIsLost) {
  for (std::int64_t exchange = 2 * kExchanges + 1; exchange <= 3 * kExchanges; ++exchange) {
    hosts_ = std::make_shared<Unsteady>();
    hosts_->lost_in = exchange;
    trainer_ = tiny_on(hosted_options())(hosts_);
    EXPECT_EQ(trainer_->fit().steps, 2);
    EXPECT_TRUE(trainer_->has_state());
    hosts_->regroup();
    trainer_->fit();
    expect_as_alone(*trainer_);
    // The third step was done twice.
    EXPECT_EQ(hosts_->exchanges, exchange + kExchanges * (alone_->result().steps - 2));
  }
}

TEST_F(UnsteadyHosts, PauseTrainingWhereOneWantsToCome) {
  // In the middle of the third step, which is completed.
  hosts_->comes_in = 2 * kExchanges + 1;
  EXPECT_EQ(trainer_->fit().steps, 3);
  hosts_->regroup();
  trainer_->fit();
  expect_as_alone(*trainer_);
  EXPECT_EQ(hosts_->exchanges, kExchanges * alone_->result().steps);
}

// The others must not wait for a step that fails here, and has been begun.
TEST_F(UnsteadyHosts, HearOfAStepThatIsNotFinished) {
  TrainOptions options = hosted_options();
  options.hosts = hosts_;
  const auto trace = test::trace_of({2, 12, 32, 4, 46, 6, 26});
  auto trainer = std::make_unique<Trainer>(failing_once(3), trace, options);
  EXPECT_THAT(error_of([&] { trainer->fit(); }), testing::HasSubstr("no more data"));
  trainer.reset();
  EXPECT_EQ(hosts_->abandoned, 1);
  // What the hosts have lost themselves is not abandoned: there may be a new group.
  hosts_->lost_in = hosts_->exchanges + 2;
  trainer = std::make_unique<Trainer>(test::tiny_objective(), trace, options);
  EXPECT_EQ(trainer->fit().steps, 0);
  hosts_->regroup();
  trainer->fit();
  expect_as_alone(*trainer);
  trainer.reset();
  EXPECT_EQ(hosts_->abandoned, 1);
}

TEST_F(UnsteadyHosts, DoByThemselvesWhatOthersHaveDone) {
  hosts_->done_by_others = 4;
  trainer_->fit();
  expect_as_alone(*trainer_);
  EXPECT_EQ(hosts_->exchanges, kExchanges * (alone_->result().steps - 4));
}

TEST_F(UnsteadyHosts, AreRefusedWhatSeveralAre) {
  TrainOptions options = hosted_options();
  options.log_minibatches = true;
  EXPECT_EQ(error_of([&] { tiny_on(options)(hosts_); }),
            "a record of every minibatch on several hosts; accepted: on one host");
}

}  // namespace
}  // namespace rubato
