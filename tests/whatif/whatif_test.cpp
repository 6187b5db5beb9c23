// Runs without their events, beside the runs that a user would make by hand.

#include "runs/whatif/whatif.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs_in_folders.hpp"
#include "runs/run/fork.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

// So many steps of a batch and cores.
struct Rows {
  int steps;
  int batch;
  int cores;
};

class WhatIfTest : public test::RunsInFolders {
 protected:
  // A configuration of 4 epochs of 512 samples under a trace of these rows, of which the last
  // holds.
  [[nodiscard]] RunConfiguration under(const std::string& name,
                                       const std::vector<Rows>& rows) const {
    std::string text = "step,batchsize,cores\n";
    int step = 0;
    for (const auto& [steps, batch, cores] : rows) {
      for (int i = 0; i < steps; ++i) text += fmt::format("{},{},{}\n", step++, batch, cores);
    }
    const fs::path file = folder(name + ".csv");
    write_file(file, text);
    return {.model = "quadratic:dim=5,samples=512",
            .trace = file.string(),
            .on_trace_end = TraceEnd::hold,
            .learning_rate = 0.05,
            .epochs = 4,
            .threads = 2,
            .checkpoint_every = "10steps"};
  }
  // Train the run and a fork, and return their outcome as text.
  std::string train(const std::string& name, const RunConfiguration& run) const {
    RunsInFolders::train(name, run);
    return text_of(recorded_training(folder(name), run.minibatch).outcome);
  }
  std::string fork(const std::string& name, const RunConfiguration& run, const std::string& of,
                   std::int64_t step) const {
    RunsInFolders::fork(name, run, of, step);
    return text_of(recorded_training(folder(name), run.minibatch).outcome);
  }
  [[nodiscard]] WhatIfRequest request(const std::string& name) const {
    return {.run = folder(name),
            .configuration = configuration_of_run(folder(name), {.threads = 2})};
  }
  [[nodiscard]] WhatIfResult whatif(const std::string& name,
                                    const std::string& without = {}) const {
    WhatIfRequest asked = request(name);
    asked.without = without;
    return what_if(asked, parts_);
  }
  static std::string text_of(const TrainingOutcome& outcome) {
    return outcome_form().write(outcome).dump(1);
  }

  const WhatIfParts parts_{.load = dense_workload, .report = [](const std::string&) {}};
};

TEST_F(WhatIfTest, HasTheNumbersOfTheRunWithoutAPreemption) {
  const std::string run = train("run", under("run", {{9, 64, 4}, {20, 32, 2}}));
  const std::string whole = train("whole", under("whole", {{1, 64, 4}}));
  ASSERT_NE(run, whole);
  for (const char* without : {"", "1", "@10", "preemptions", "all-changes"}) {
    const WhatIfResult result = whatif("run", without);
    EXPECT_EQ(text_of(result.run), run);
    ASSERT_THAT(result.counterfactuals, SizeIs(1)) << without;
    EXPECT_EQ(text_of(result.counterfactuals[0].outcome), whole) << without;
    EXPECT_EQ(result.counterfactuals[0].steps, 9);
    EXPECT_FALSE(result.counterfactuals[0].same_bits);
  }
}

TEST_F(WhatIfTest, HasTheNumbersOfTheRunWithoutAChangeOfTheBatch) {
  train("run", under("run", {{5, 32, 2}, {7, 96, 2}, {9, 64, 2}}));
  const WhatIfResult result = whatif("run");
  ASSERT_THAT(result.counterfactuals, SizeIs(3));
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome),
            train("first", under("first", {{12, 32, 2}, {9, 64, 2}})));
  EXPECT_EQ(text_of(result.counterfactuals[1].outcome),
            train("second", under("second", {{5, 32, 2}, {7, 96, 2}})));
  EXPECT_EQ(text_of(result.counterfactuals[2].outcome), train("none", under("none", {{5, 32, 2}})));
}

TEST_F(WhatIfTest, HasTheNumbersOfTheRunWithoutAFault) {
  RunConfiguration run = under("run", {{9, 64, 4}, {9, 32, 2}});
  run.fault = "core=1,step=3+core=0,step=3+core=0,step=12";
  train("run", run);
  run.fault = {};
  const std::string sound = train("sound", run);
  const WhatIfResult result = whatif("run");
  ASSERT_THAT(result.events, SizeIs(3));
  ASSERT_THAT(result.counterfactuals, SizeIs(4));
  for (const std::size_t fault : {0U, 2U}) {
    EXPECT_EQ(result.events[fault].kind, RunEvent::Kind::fault);
    EXPECT_EQ(text_of(result.counterfactuals[fault].outcome), sound);
    EXPECT_TRUE(result.counterfactuals[fault].same_bits);
  }
  EXPECT_EQ(result.events[0].words(), "cores 0, 1 died");
  EXPECT_EQ(result.events[0].fault->minibatches, 2);
  EXPECT_EQ(result.events[2].steps, 11);
  EXPECT_EQ(result.events[2].fault->minibatches, 1);
  // The training without the one change is the one without all.
  EXPECT_EQ(result.plan.forks, 1);
}

// A fault line tells which cores are left, so lines of one step that differ in it are of several
// attempts.
TEST_F(WhatIfTest, CountsEveryAttemptAtAStep) {
  RunConfiguration run = under("run", {{9, 64, 4}, {9, 32, 4}});
  run.faults = "rate=0.3,seed=1";
  train("run", run);
  std::map<std::int64_t, std::set<std::int64_t>> cores_left;
  std::istringstream lines(read_file(folder("run") / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("kind") == "fault")
      cores_left[json.at("step")].insert(json.at("cores_left").get<std::int64_t>());
  }
  const RecordedTraining training = recorded_training(folder("run"), run.minibatch);
  ASSERT_EQ(training.faults.size(), cores_left.size());
  std::int64_t most = 0;
  for (const RecordedTraining::Fault& fault : training.faults) {
    EXPECT_EQ(fault.attempts, std::ssize(cores_left.at(fault.step))) << fault.step;
    const std::int64_t batch = training.steps.at(static_cast<std::size_t>(fault.step)).batch_size;
    EXPECT_EQ(fault.minibatches, fault.attempts * batch / run.minibatch) << fault.step;
    most = std::max(most, fault.attempts);
  }
  EXPECT_GT(most, 1);
}

// A change of the cores alone has the bits of the run, and is not trained.
TEST_F(WhatIfTest, KnowsTheRunWithOtherCoresWithoutTraining) {
  train("run", under("run", {{9, 64, 4}, {9, 64, 1}}));
  const WhatIfResult result = whatif("run");
  ASSERT_THAT(result.counterfactuals, SizeIs(1));
  EXPECT_TRUE(result.counterfactuals[0].same_bits);
  EXPECT_EQ(result.plan.forks, 0);
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome),
            train("whole", under("whole", {{1, 64, 4}})));
}

class WhatIfInTime : public WhatIfTest {
 protected:
  // A run of 4 epochs on devices that come and go at these seconds.
  [[nodiscard]] RunConfiguration on(const std::string& name,
                                    const std::vector<std::pair<int, int>>& devices) const {
    std::string text = "seconds,count\n";
    for (const auto& [seconds, count] : devices) text += fmt::format("{},{}\n", seconds, count);
    text += "99999,\n";
    const RunConfiguration run = under(name, {{1, 32, 1}});
    write_file(folder(name + ".csv"), text);
    return test::with_options(run,
                              "clock=virtual cluster=substep=10,restart=30 price=2 "
                              "availability=weak:max-batch=128");
  }
};

TEST_F(WhatIfInTime, HasTheNumbersOfTheRunWithoutAPreemption) {
  train("run", on("run", {{0, 4}, {57, 2}, {145, 4}, {200, 3}}));
  const WhatIfResult result = whatif("run");
  ASSERT_THAT(result.events, SizeIs(3));
  ASSERT_THAT(result.counterfactuals, SizeIs(4));
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome),
            train("first", on("first", {{0, 4}, {200, 3}})));
  EXPECT_EQ(text_of(result.counterfactuals[1].outcome),
            train("second", on("second", {{0, 4}, {57, 2}, {200, 3}, {90'000, 4}})));
  EXPECT_EQ(text_of(result.counterfactuals[3].outcome), train("none", on("none", {{0, 4}})));
  // In both losses it lost what it had done of a step, 7 and 3 seconds, and restarted. Without the
  // first it ends before the second.
  const Effect effect = effect_of(result.run, result.counterfactuals[0].outcome, result.target);
  EXPECT_NEAR(effect.lost_seconds.value(), 7 + 30 + 3 + 30, 1e-6);
  EXPECT_EQ(text_of(whatif("run", "preemptions").counterfactuals[0].outcome),
            text_of(result.counterfactuals[3].outcome));
}

// The batches are scaled to the most devices, which are no longer there without their event.
TEST_F(WhatIfInTime, KeepsTheScaleOfTheRun) {
  train("run", on("run", {{0, 4}, {57, 8}}));
  EXPECT_EQ(text_of(whatif("run").counterfactuals[0].outcome),
            train("without", on("without", {{0, 4}, {90'000, 8}})));
}

TEST_F(WhatIfInTime, KnowsTheRunOfAFixedBatchWithoutTraining) {
  const auto strong = [&](const std::string& name,
                          const std::vector<std::pair<int, int>>& devices) {
    RunConfiguration run = on(name, devices);
    run.availability = "strong:batch=128";
    return train(name, run);
  };
  strong("run", {{0, 4}, {57, 2}, {145, 4}});
  const WhatIfResult result = whatif("run");
  EXPECT_EQ(result.plan.forks, 0);
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome), strong("first", {{0, 4}}));
}

TEST_F(WhatIfTest, SaysWhatTwoEventsDoTogether) {
  train("run", under("run", {{6, 64, 4}, {6, 32, 2}, {6, 128, 8}}));
  const WhatIfResult result = whatif("run");
  ASSERT_THAT(result.singles(), SizeIs(2));
  const Counterfactual* const together = result.together();
  ASSERT_NE(together, nullptr);
  EXPECT_THAT(together->events, ElementsAre(0, 1));
  const std::string none = train("none", under("none", {{1, 64, 4}}));
  EXPECT_EQ(text_of(together->outcome), none);
  double sum = 0;
  for (const Counterfactual* const one : result.singles()) {
    sum += effect_of(result.run, one->outcome, result.target).loss.value();
  }
  const double both = effect_of(result.run, together->outcome, result.target).loss.value();
  EXPECT_EQ(both, result.run.loss() - together->outcome.loss());
  EXPECT_GT(std::abs(sum - both), 1e-6);
}

TEST_F(WhatIfTest, ContinuesAfterAnInterruption) {
  const RunConfiguration run = under("run", {{6, 64, 4}, {6, 32, 2}, {6, 128, 8}});
  train("run", run);
  train("again", run);
  const std::string whole = whatif_form().write(whatif("again")).dump();
  WhatIfParts parts = parts_;
  parts.on_step = [](const WhatIfProgress& at) {
    if (at.fork == 3) throw std::runtime_error("interrupted");
  };
  EXPECT_THROW(static_cast<void>(what_if(request("run"), parts)), std::runtime_error);
  EXPECT_FALSE(fs::exists(whatif_file(folder("run"))));
  std::vector<std::int64_t> steps;
  parts.on_step = [&](const WhatIfProgress& at) { steps.push_back(at.fork); };
  const WhatIfResult result = what_if(request("run"), parts);
  EXPECT_EQ(result.plan.trained, 2);
  EXPECT_EQ(result.plan.forks, 1);
  EXPECT_THAT(steps, Contains(1));
  EXPECT_THAT(steps, Not(Contains(2)));
  EXPECT_EQ(whatif_form().write(result).dump(), whole);
}

TEST_F(WhatIfTest, TrainsAForkAgainWhoseFileIsDamaged) {
  train("run", under("run", {{9, 64, 4}, {20, 32, 2}}));
  const WhatIfResult result = whatif("run");
  std::string told;
  WhatIfParts parts = parts_;
  parts.report = [&](const std::string& text) { told += text; };
  for (const auto& file : fs::directory_iterator(folder("run") / "whatif")) {
    write_file(file.path(), "{}");
  }
  EXPECT_EQ(whatif_form().write(what_if(request("run"), parts)).dump(),
            whatif_form().write(result).dump());
  EXPECT_THAT(told, HasSubstr("is damaged, and its fork is trained again"));
}

TEST_F(WhatIfTest, HasOtherOptionsFromTheFirstEventOn) {
  train("run", under("run", {{9, 64, 4}, {20, 32, 2}}));
  WhatIfRequest asked = request("run");
  asked.change = [](RunConfiguration& changed) { changed.rule = "root"; };
  asked.changes = "rule root";
  const WhatIfResult result = what_if(asked, parts_);
  ASSERT_THAT(result.counterfactuals, SizeIs(2));
  EXPECT_EQ(result.counterfactuals[1].name, "with rule root");
  RunConfiguration changed = asked.configuration;
  asked.change(changed);
  EXPECT_EQ(text_of(result.counterfactuals[1].outcome), fork("fork", changed, "run", 9));
}

class WhatIfOfForks : public WhatIfTest {
 protected:
  // The run that has rows until step 24, "a" that is forked from it after step 14 with another rate
  // and rule, and "b" from "a" after step 20 with another seed.
  void train_forks(const std::vector<Rows>& rows) const {
    RunConfiguration run = under("run", rows);
    train("run", run);
    fork("a", faster(run), "run", 14);
    fork("b", reordered(run), "a", 20);
  }
  static RunConfiguration faster(RunConfiguration run) {
    run.learning_rate = 0.08;
    run.rule = "root";
    return run;
  }
  static RunConfiguration reordered(RunConfiguration run) {
    run = faster(std::move(run));
    run.seed = 5;
    return run;
  }
  // The same by hand, under other rows from step `from` on.
  [[nodiscard]] std::string by_hand(const std::string& name, const std::vector<Rows>& rows,
                                    std::int64_t from) const {
    const RunConfiguration run = under(name, rows);
    if (from < 14) fork(name + "-run", run, "run", from);
    fork(name + "-a", faster(run), from < 14 ? name + "-run" : "a",
         std::max<std::int64_t>(from, 14));
    return fork(name + "-b", reordered(run), name + "-a", 20);
  }
};

TEST_F(WhatIfOfForks, HasTheOptionsOfEachStep) {
  train_forks({{9, 64, 4}, {8, 32, 2}, {90, 96, 4}});
  const WhatIfResult result = whatif("b");
  ASSERT_THAT(result.counterfactuals, SizeIs(3));
  EXPECT_EQ(result.counterfactuals[0].steps, 9);
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome),
            by_hand("first", {{17, 64, 4}, {90, 96, 4}}, 9));
  EXPECT_EQ(text_of(result.counterfactuals[1].outcome),
            by_hand("second", {{9, 64, 4}, {90, 32, 2}}, 17));
  EXPECT_EQ(text_of(result.counterfactuals[2].outcome), by_hand("none", {{1, 64, 4}}, 9));
}

TEST_F(WhatIfOfForks, HasOtherOptionsInEveryStep) {
  train_forks({{9, 64, 4}, {90, 32, 2}});
  WhatIfRequest asked = request("a");
  asked.change = [](RunConfiguration& run) { run.momentum = 0.5; };
  const WhatIfResult result = what_if(asked, parts_);
  RunConfiguration run = under("run", {{9, 64, 4}, {90, 32, 2}});
  run.momentum = 0.5;
  fork("changed", run, "run", 9);
  EXPECT_EQ(text_of(result.counterfactuals.back().outcome),
            fork("changed-a", faster(run), "changed", 14));
}

TEST_F(WhatIfOfForks, HasOtherOrdersInEveryStep) {
  train_forks({{9, 64, 4}, {90, 32, 2}});
  WhatIfRequest asked = request("a");
  asked.seeds = 1;
  const WhatIfResult result = what_if(asked, parts_);
  RunConfiguration run = under("run", {{9, 64, 4}, {90, 32, 2}});
  run.seed = result.counterfactuals[0].others.at(0).seed;
  fork("other", run, "run", 9);
  EXPECT_EQ(text_of(result.counterfactuals[0].others[0].run),
            fork("other-a", faster(run), "other", 14));
}

// It knows the fork's own steps alone.
TEST_F(WhatIfOfForks, LeavesOutItsOwnEventsIfItsOriginIsGone) {
  train_forks({{9, 64, 4}, {8, 32, 2}, {90, 96, 4}});
  const WhatIfResult whole = whatif("a");
  fs::rename(folder("run"), folder("moved"));
  fs::remove_all(folder("a") / "whatif");
  const WhatIfResult rest = whatif("a");
  ASSERT_THAT(rest.counterfactuals, SizeIs(1));
  EXPECT_EQ(text_of(rest.counterfactuals[0].outcome), text_of(whole.counterfactuals[1].outcome));
}

// Cores differ, and a fork has another number of them where the trace has none.
TEST_F(WhatIfOfForks, TrainsWhatItCannotForesee) {
  write_file(folder("t.csv"), "step,batchsize\n0,64\n1,64\n2,64\n3,32\n4,64\n");
  RunConfiguration run = under("run", {{1, 64, 4}});
  run.trace = folder("t.csv").string();
  run.cores = 4;
  train("run", run);
  RunConfiguration more = run;
  more.cores = 2;
  const std::string of_a = fork("a", more, "run", 14);
  WhatIfRequest asked = request("a");
  asked.without = "1,2";
  const WhatIfResult result = what_if(asked, parts_);
  EXPECT_EQ(text_of(result.run), of_a);
  run.trace = "64";
  fork("x", run, "run", 3);
  more.trace = "64";
  EXPECT_EQ(text_of(result.counterfactuals.back().outcome), fork("y", more, "x", 14));
}

// The epoch that ends with the step before an event is evaluated once.
TEST_F(WhatIfTest, CountsAnEpochThatEndsAtItsForkOnce) {
  train("run", under("run", {{8, 64, 4}, {90, 32, 2}}));
  const WhatIfResult result = whatif("run");
  ASSERT_EQ(result.run.epochs.at(0).steps, 8);
  ASSERT_EQ(result.counterfactuals[0].steps, 8);
  EXPECT_EQ(text_of(result.counterfactuals[0].outcome),
            train("whole", under("whole", {{1, 64, 4}})));
}

// The same command in the same folder, on other samples of the same name.
TEST_F(WhatIfTest, TakesNoOutcomesOfAnotherRunInItsFolder) {
  const std::string on_file = "model=softmax data=csv:" + folder("d.csv").string();
  const auto train_on = [&](int shift) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 512; ++i) {
      text += fmt::format("{}.5,{}.5,{}\n", i % 31, (i + shift) % 47, i % 2);
    }
    write_file(folder("d.csv"), text);
    train("run", test::with_options(under("t", {{9, 64, 4}, {90, 32, 2}}), on_file));
    return text_of(whatif("run").counterfactuals.at(0).outcome);
  };
  const std::string first = train_on(0);
  fs::rename(folder("run") / "whatif", folder("whatif"));
  fs::remove_all(folder("run"));
  const std::string second = train_on(3);
  fs::remove_all(folder("run"));
  EXPECT_NE(first, second);
  // Its outcomes are there when the other run is asked about.
  train("run", test::with_options(under("t", {{9, 64, 4}, {90, 32, 2}}), on_file));
  fs::rename(folder("whatif"), folder("run") / "whatif");
  EXPECT_EQ(text_of(whatif("run").counterfactuals.at(0).outcome), second);
}

TEST_F(WhatIfInTime, WritesHours) {
  train("run", on("run", {{0, 4}, {57, 2}}));
  const WhatIfResult result = whatif("run");
  const auto effect = whatif_form().write(result)["counterfactuals"][0]["effects"][0];
  // It lost 7 seconds of a step, and restarted in 30.
  EXPECT_NEAR(effect["lost_hours"].get<double>(), 37.0 / 3600, 1e-9);
  EXPECT_NEAR(effect["hours"].get<double>(),
              (result.run.time->seconds - result.counterfactuals[0].outcome.time->seconds) / 3600,
              1e-12);
  EXPECT_NEAR(whatif_form().write(result)["events"][0]["hours"].get<double>(), 57.0 / 3600, 1e-12);
}

TEST_F(WhatIfTest, RepeatsForksWithOtherOrdersOfTheSamples) {
  train("run", under("run", {{9, 64, 4}, {20, 32, 2}}));
  WhatIfRequest asked = request("run");
  asked.seeds = 2;
  const WhatIfResult result = what_if(asked, parts_);
  ASSERT_THAT(result.counterfactuals[0].others, SizeIs(2));
  EXPECT_EQ(result.plan.forks, 5);
  for (const auto& other : result.counterfactuals[0].others) {
    RunConfiguration reordered = asked.configuration;
    reordered.seed = other.seed;
    EXPECT_EQ(text_of(other.run), fork(fmt::format("fork-{}", other.seed), reordered, "run", 9));
    EXPECT_NE(text_of(other.outcome), text_of(result.counterfactuals[0].outcome));
  }
}

TEST_F(WhatIfTest, LeavesOutTheLargestChangesAlone) {
  train("run", under("run", {{5, 32, 2}, {5, 64, 2}, {5, 96, 2}, {5, 32, 2}}));
  WhatIfRequest asked = request("run");
  asked.most = 1;
  const WhatIfResult result = what_if(asked, parts_);
  EXPECT_EQ(result.plan.events_skipped, 2);
  ASSERT_THAT(result.counterfactuals, SizeIs(2));
  EXPECT_THAT(result.counterfactuals[0].events, ElementsAre(2));
  EXPECT_THAT(result.counterfactuals[1].events, ElementsAre(0, 1, 2));
  EXPECT_EQ(result.counterfactuals[1].name, "without all changes");
}

TEST_F(WhatIfTest, LeavesOutChosenEventsAloneAndTogether) {
  train("run", under("run", {{5, 32, 2}, {5, 64, 2}, {5, 96, 2}, {5, 32, 2}}));
  const WhatIfResult result = whatif("run", "@6,3");
  ASSERT_THAT(result.counterfactuals, SizeIs(3));
  EXPECT_EQ(result.counterfactuals[0].name, "without event 1");
  EXPECT_EQ(result.counterfactuals[1].name, "without event 3");
  EXPECT_EQ(result.counterfactuals[2].name, "without events 1, 3");
  EXPECT_EQ(text_of(result.counterfactuals[2].outcome),
            train("two", under("two", {{10, 32, 2}, {5, 96, 2}})));
}

TEST_F(WhatIfTest, SaysWhatItCannotDo) {
  const auto refused = [&](const WhatIfRequest& asked) {
    return error_of([&] { return what_if(asked, parts_); });
  };
  train("run", under("run", {{9, 32, 2}, {20, 64, 2}}));
  train("flat", under("flat", {{9, 32, 2}}));
  EXPECT_THAT(refused(request("flat")), HasSubstr("there is nothing to leave out"));
  WhatIfRequest asked = request("run");
  asked.without = "2";
  EXPECT_THAT(refused(asked), HasSubstr("--without 2: '2'"));
  asked.without = "@4";
  EXPECT_THAT(refused(asked), HasSubstr("there is no event in step 4"));
  asked.without = "preemptions";
  EXPECT_THAT(refused(asked), HasSubstr("no devices were taken from"));
  RunConfiguration loose = under("loose", {{9, 32, 2}, {20, 64, 2}});
  loose.exact = false;
  train("loose", loose);
  EXPECT_THAT(refused(request("loose")), HasSubstr("--exact=false"));
  fs::remove(folder("run") / "summary.json");
  EXPECT_THAT(refused(asked), HasSubstr("has not ended"));
}

TEST_F(WhatIfTest, CountsSamplesUntilATarget) {
  train("run", under("run", {{9, 64, 4}, {20, 32, 2}}));
  WhatIfRequest asked = request("run");
  asked.target.loss = whatif("run").run.epochs.at(1).loss;
  const WhatIfResult result = what_if(asked, parts_);
  const TrainingOutcome& without = result.counterfactuals[0].outcome;
  EXPECT_EQ(result.run.reached(asked.target)->samples, 1024);
  ASSERT_EQ(without.reached(asked.target)->samples, 1536);
  EXPECT_EQ(effect_of(result.run, without, asked.target).target_samples, -512);
  asked.target.loss = 0;
  EXPECT_EQ(what_if(asked, parts_).run.reached(asked.target), nullptr);
}

TEST_F(WhatIfTest, FindsTheEventAfterWhichARunDiverged) {
  train("run", test::with_options(under("run", {{9, 32, 4}, {9, 64, 4}, {9, 512, 4}}),
                                  "ref-batch=32 lr=0.3 epochs=400"));
  const WhatIfResult result = whatif("run");
  EXPECT_EQ(result.run.end, RunEnd::diverged);
  ASSERT_THAT(result.counterfactuals, SizeIs(3));
  EXPECT_EQ(result.counterfactuals[0].outcome.end, RunEnd::diverged);
  EXPECT_EQ(result.counterfactuals[1].outcome.end, RunEnd::completed);
  const auto& saved = result.counterfactuals[1].outcome;
  EXPECT_TRUE(std::isfinite(saved.loss()));
  EXPECT_FALSE(effect_of(result.run, saved, result.target).loss.has_value());
}

}  // namespace
}  // namespace rubato
