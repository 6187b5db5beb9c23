// What threads spend their time on (TrainOptions::on_span).

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/reducer.hpp>
#include <rubato/loop/trainer.hpp>

#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

// Keeps all of them.
class Spans {
 public:
  OnSpan listener() {
    return [this](const Span& span) {
      const std::lock_guard lock(mutex_);
      all_.push_back(span);
    };
  }
  [[nodiscard]] const std::vector<Span>& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<Span> all_;
};

Trainer spanned_trainer(OnSpan on_span, const std::string& reduce = "tree",
                        bool log_minibatches = false) {
  TrainOptions options{.epochs = 2,
                       .minibatch_size = 4,
                       .learning_rate = 0.05,
                       .log_minibatches = log_minibatches,
                       .on_span = std::move(on_span),
                       .cores = 5,
                       .reduce = reduce,
                       .threads = 3};
  return {softmax_regression(test::digits(80), {}), test::trace_of({24, 40, 4}), options};
}

// Which are computed one after the other where each is logged.
TEST(Spans, TellWhatBecameOfEveryMinibatch) {
  using enum Activity;
  Spans spans;
  Trainer trainer = spanned_trainer(spans.listener(), "tree", /*log_minibatches=*/true);
  const auto recorder = test::recorded(trainer);
  for (const StepRecord& step : recorder->steps) {
    SCOPED_TRACE(step.plan.index.value());
    const StepPlan& plan = step.plan;
    std::map<std::int64_t, std::vector<Span>> of_minibatch;
    std::vector<Span> of_step;
    for (const Span& span : spans.all()) {
      if (span.step != plan.index) continue;
      EXPECT_EQ(span.epoch, step.epoch);
      EXPECT_LE(span.begin, span.end);
      EXPECT_THAT(span.thread, AllOf(testing::Ge(0), testing::Lt(3)));
      if (span.minibatch) {
        of_minibatch[span.minibatch->value()].push_back(span);
      } else {
        EXPECT_FALSE(span.core);
        of_step.push_back(span);
      }
    }
    // What comes when all gradients are there.
    ASSERT_EQ(of_step.size(), 2U);
    EXPECT_EQ(of_step[0].activity, merge);
    EXPECT_EQ(of_step[1].activity, update);
    ASSERT_EQ(of_minibatch.size(), static_cast<std::size_t>(plan.minibatches));
    for (CoreRank core; core.value() < plan.cores; ++core) {
      const MinibatchRun share = plan.share_of(core, Assignment::contiguous);
      for (std::int64_t i = 0; i < share.count; ++i) {
        const std::vector<Span>& of = of_minibatch[share[i].value()];
        std::vector<Activity> activities;
        for (const Span& span : of) {
          activities.push_back(span.activity);
          EXPECT_EQ(span.core, core);
          EXPECT_EQ(span.thread, of.front().thread);
          EXPECT_LE(span.end, of_step.back().begin);
        }
        EXPECT_EQ(activities, (std::vector{gather, forward, loss, backward, merge}));
      }
    }
  }
}

TEST(Spans, OfAThreadDoNotOverlap) {
  for (const char* const reduce : {"tree", "chunked-tree", "sharded"}) {
    Spans spans;
    spanned_trainer(spans.listener(), reduce).fit();
    std::map<int, std::vector<Span>> of_thread;
    for (const Span& span : spans.all()) of_thread[span.thread].push_back(span);
    for (auto& [thread, of] : of_thread) {
      std::ranges::sort(of, {}, [](const Span& span) { return span.begin; });
      for (std::size_t i = 1; i < of.size(); ++i) {
        ASSERT_LE(of[i - 1].end, of[i].begin)
            << reduce << ": " << choice_name(kActivities, of[i - 1].activity) << " and "
            << choice_name(kActivities, of[i].activity);
      }
    }
  }
}

TEST(Spans, TellHowManyMinibatchesWereComputedInOnePass) {
  Spans spans;
  TrainOptions options{
      .epochs = 1, .minibatch_size = 4, .on_span = spans.listener(), .cores = 2, .threads = 2};
  Trainer trainer(softmax_regression(test::digits(28), {}), test::trace_of({28}), options);
  trainer.fit();
  std::map<std::int64_t, std::int64_t> passes;
  for (const Span& span : spans.all()) {
    if (span.activity == Activity::backward) passes[span.minibatch->value()] = span.minibatches;
  }
  // Of seven minibatches core 0 has four and core 1 three: a subtree each.
  EXPECT_EQ(passes, (std::map<std::int64_t, std::int64_t>{{0, 4}, {4, 3}}));
}

TEST(Spans, TellHowManyCoresWereComputedInOnePass) {
  Spans spans;
  TrainOptions options{
      .epochs = 1, .minibatch_size = 4, .on_span = spans.listener(), .cores = 7, .threads = 2};
  Trainer trainer(softmax_regression(test::digits(56), {}), test::trace_of({56}), options);
  trainer.fit();
  using Passes = std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>;
  std::map<Activity, Passes> passes;
  for (const Span& span : spans.all()) {
    if (span.core) passes[span.activity][span.core->value()] = {span.cores, span.minibatches};
  }
  // Each core has two minibatches. Seven cores are four for one thread, and three for the other.
  for (const auto& [activity, of] : passes) {
    EXPECT_EQ(of, (Passes{{0, {4, 8}}, {4, {3, 6}}})) << choice_name(kActivities, activity);
  }
  EXPECT_EQ(passes.size(), 5U) << "gather, forward, loss, backward and merge";
}

TEST(Spans, OfTests) {
  Spans spans;
  TrainOptions options{.epochs = 2, .minibatch_size = 4, .on_span = spans.listener()};
  Trainer trainer(test::tiny_objective(16), test::trace_of({8}), options);
  trainer.fit();
  std::vector<std::int64_t> steps;
  for (const Span& span : spans.all()) {
    if (span.activity == Activity::test) steps.push_back(span.step.value());
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 3}));
}

// Where there are gaps between them, the same two cores may meet more than once.
TEST(Meetings, BringTheSumsOfAllCoresTogether) {
  for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
    std::mutex mutex;
    std::map<std::int64_t, std::vector<Meeting>> of_step;
    TrainOptions options{.epochs = 3,
                         .minibatch_size = 4,
                         // So that no pass spans cores.
                         .log_minibatches = true,
                         .cores = 5,
                         .assignment = assignment,
                         .reduce = "tree",
                         .threads = 3};
    options.on_meeting = [&](StepIndex step, const Meeting& meeting) {
      const std::lock_guard lock(mutex);
      of_step[step.value()].push_back(meeting);
    };
    Trainer trainer(softmax_regression(test::digits(80), {}), test::trace_of({24, 36, 20}),
                    options);
    trainer.fit();
    EXPECT_EQ(of_step.size(), 9U);
    for (const auto& [step, meetings] : of_step) {
      std::map<CoreRank, CoreRank> group;
      for (CoreRank core; core.value() < 5; ++core) group[core] = core;
      for (const Meeting& meeting : meetings) {
        EXPECT_NE(meeting.first, meeting.second);
        EXPECT_LE(meeting.left, meeting.taken);
        const CoreRank joined = group[meeting.first];
        const CoreRank into = group[meeting.second];
        for (auto& [core, of] : group) of = of == joined ? into : of;
      }
      for (const auto& [core, of] : group) EXPECT_EQ(of, group[CoreRank{0}]) << step;
    }
  }
}

TEST(Spans, ChangeNoBit) {
  Spans spans;
  Trainer spanned = spanned_trainer(spans.listener());
  Trainer plain = spanned_trainer({});
  spanned.fit();
  plain.fit();
  EXPECT_EQ(test::difference_of(spanned, plain), std::nullopt);
}

TEST(Spans, OfWhatACoreDidBeforeItDied) {
  Spans spans;
  TrainOptions options{.epochs = 1, .minibatch_size = 4, .cores = 2, .threads = 1};
  options.faults.planned = {{.core = CoreRank{1}, .step = StepIndex{0}, .substep = 1}};
  options.on_span = spans.listener();
  Trainer trainer(softmax_regression(test::digits(16), {}), test::trace_of({16}), options);
  trainer.fit();
  // Three minibatches before the death, and then all four.
  EXPECT_EQ(std::ranges::count(spans.all(), Activity::backward, &Span::activity), 3 + 4);
}

TEST(Spans, WhoseListenerThrowsEndTraining) {
  for (const Activity fatal : {Activity::forward, Activity::merge, Activity::update}) {
    SCOPED_TRACE(choice_name(kActivities, fatal));
    Trainer trainer = spanned_trainer([fatal](const Span& span) {
      if (span.activity == fatal && span.step.value() == 1) throw Error("no disk");
    });
    EXPECT_THAT(error_of([&] { trainer.fit(); }), HasSubstr("no disk"));
    EXPECT_EQ(trainer.result().steps, 1);
    EXPECT_EQ(trainer.has_state(), fatal != Activity::update);
  }
}

}  // namespace
}  // namespace rubato
