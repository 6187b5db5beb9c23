// States that an earlier version has written (tests/policy/states, by the commit that their names
// say): they are loaded, and saved again as they were. Whatever is remembered is in one of them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/testing.hpp>

#include "policy/adaptive.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

class Keep final : public GradientTransform<double> {
 public:
  explicit Keep(std::size_t size) : last_(size) {}
  void apply(const StepGradient<double>& gradient, Workers&) override {
    last_.assign(gradient.values.begin(), gradient.values.end());
  }
  void visit_state(StateVisitor& state) override { state.values("last", std::span(last_)); }

 private:
  std::vector<double> last_;
};

TrainOptions options_of(OptimizerOptions optimizer, const std::string& rule) {
  TrainOptions options = test::adaptive_options(32);
  options.epochs = 9;
  options.optimizer = optimizer;
  options.rule = rule;
  options.log_noise = true;
  options.gradient_transforms = {
      {.name = "keep", .of_float = {}, .of_double = [](const auto& parts) {
         return std::make_unique<Keep>(parts.layout.size());
       }}};
  return options;
}

// They are from before steps had digests.
Trainer trainer_of(TrainOptions options, std::unique_ptr<StepSource> source) {
  options.digest_every = 0;
  Trainer trainer(test::tiny_objective(80), std::move(source), options);
  trainer.add_observer<EarlyStopping>(Metric::train_loss, PatienceOptions{.patience = 8});
  trainer.add_observer<BestWeights>(Metric::train_loss);
  return trainer;
}

Trainer by_noise() {
  TrainOptions options = options_of({.method = AdamOptions{.amsgrad = true}}, "linear:ramp=3");
  options.remainder = Remainder::carry;
  options.lookahead = LookaheadOptions{.k = 2};
  options.schedule = "warmup:length=2+plateau:patience=1,factor=0.5";
  options.watch = Metric::train_loss;
  return trainer_of(options, test::adaptive_source("noise-scale:max=64,wait=2", 32));
}

Trainer by_goodput() {
  return trainer_of(
      options_of({.method = RmspropOptions{.centered = true}, .momentum = 0.5}, "adascale"),
      test::adaptive_source("goodput:max=64", 32));
}

// Each stops in the middle of an epoch.
struct OldState {
  const char* file;
  Trainer (*trainer)();
  std::int64_t steps;

  friend std::ostream& operator<<(std::ostream& out, const OldState& state) {
    return out << state.file;
  }
};

// The texts of a state. The lines of its configuration may be in any order; those without a value,
// which are no longer written, and optimizer_memory, which has been added since, are left out.
State::Texts texts_of(const State& state) {
  std::istringstream in(state.text("configuration"));
  std::set<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    const bool is_empty = line.ends_with(" = ");
    if (!is_empty && !line.starts_with("optimizer_memory = ")) lines.insert(line);
  }
  State::Texts texts = state.texts();
  std::string& sorted = texts["configuration"];
  sorted.clear();
  for (const std::string& line : lines) sorted += line + '\n';
  return texts;
}

class OldStates : public testing::TestWithParam<OldState> {
 protected:
  [[nodiscard]] static std::filesystem::path file() {
    return std::filesystem::path(RUBATO_OLD_STATES) / GetParam().file;
  }
};

TEST_P(OldStates, AreLoadedAndSavedAsTheyWere) {
  const State old = read_state(file());
  Trainer trainer = GetParam().trainer();
  trainer.load_state(old);
  EXPECT_EQ(trainer.result().steps, GetParam().steps);
  const State saved = trainer.state();
  EXPECT_TRUE(saved.arrays() == old.arrays());
  EXPECT_EQ(texts_of(saved), texts_of(old));
  trainer.fit();
  EXPECT_GT(trainer.result().steps, GetParam().steps);
}

// And what is saved now has the same entries, of the same types and shapes.
TEST_P(OldStates, HaveTheEntriesOfNewOnes) {
  Trainer trainer = GetParam().trainer();
  test::train_until(trainer, GetParam().steps);
  const auto entries = [](const State& state) {
    std::vector<std::string> lines;
    for (const auto& [name, array] : state.arrays()) {
      // Added since.
      if (name == "last_batch") continue;
      lines.push_back(name + " " + std::string(name_of(array.type)) + " " +
                      testing::PrintToString(array.shape));
    }
    for (const auto& [name, text] : state.texts()) lines.push_back(name);
    return lines;
  };
  EXPECT_EQ(entries(trainer.state()), entries(read_state(file())));
}

INSTANTIATE_TEST_SUITE_P(Written, OldStates,
                         testing::Values(OldState{"noise-f5fba6a", by_noise, 8},
                                         OldState{"goodput-f5fba6a", by_goodput, 6}));

}  // namespace
}  // namespace rubato
