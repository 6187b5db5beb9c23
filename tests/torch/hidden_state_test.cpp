// A model that keeps something from one forward to the next where the trainer does not see it is
// not the same bits whoever computes it. Dealing::in_turns shows it every time.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>

#include "networks.hpp"
#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::options_of;

// What a module remembers that it should not.
struct Memory {
  int calls = 0;
  double last = 0;
  double first = 0;
};
// Of all instances.
Memory common;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// The scale of the outputs, from what it remembers.
using Recall = std::function<double(Memory& memory, double mean)>;

struct Remembering : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(6, 3));
  Recall recall;
  Memory memory;

  explicit Remembering(Recall of) : recall(std::move(of)) { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) {
    return linear(x) * (1 + 0.01 * recall(memory, x.mean().item<double>()));
  }
};

std::string train(const Recall& recall, Dealing dealing) {
  common = {};
  TrainOptions options = options_of();
  options.cores = dealing == Dealing::in_turns ? 3 : 1;
  options.threads = dealing == Dealing::in_turns ? 3 : 1;
  if (dealing == Dealing::in_turns) options.assignment = Assignment::strided;
  options.dealing = dealing;
  TorchTrainer trainer([=] { return make_model(std::make_shared<Remembering>(recall)); },
                       cross_entropy_loss(), dataset(),
                       test::trace_of({8, 16, 24}, TraceEnd::cycle), options);
  trainer.fit();
  return test::state_bytes(trainer);
}

TEST(HiddenState, ShowsEveryTimeReplicasAreDealtInTurns) {
  const auto dealt = [](const Recall& recall) { return train(recall, Dealing::in_turns); };
  const auto alone = [](const Recall& recall) { return train(recall, Dealing::by_thread); };
  const Recall nothing = [](Memory&, double mean) { return mean; };
  EXPECT_TRUE(dealt(nothing) == alone(nothing));
  const std::vector<std::pair<const char*, Recall>> memories{
      {"count", [](Memory& memory, double) { return memory.calls++; }},
      {"last", [](Memory& memory, double mean) { return std::exchange(memory.last, mean); }},
      {"first",
       [](Memory& memory, double mean) {
         if (memory.calls++ == 0) memory.first = mean;
         return memory.first;
       }},
      {"warm-up", [](Memory& memory, double) { return memory.calls++ == 0 ? 1 : 0; }},
      {"count of all", [](Memory&, double) { return common.calls++; }},
      {"last of all", [](Memory&, double mean) { return std::exchange(common.last, mean); }}};
  for (const auto& [name, recall] : memories) {
    const std::string bits = dealt(recall);
    EXPECT_FALSE(bits == alone(recall)) << name;
    EXPECT_TRUE(bits == dealt(recall)) << name << ": not left to scheduling";
  }
}

// Every replica gets work, and each step begins with another.
TEST(HiddenState, EveryReplicaGetsWork) {
  struct Counter : torch::nn::Module {
    torch::nn::Linear linear = register_module("linear", torch::nn::Linear(6, 3));
    int calls = 0;

    Counter() { to(at::kDouble); }
    at::Tensor forward(const at::Tensor& x) {
      ++calls;
      return linear(x);
    }
  };
  std::vector<std::shared_ptr<Counter>> instances;
  TrainOptions options = options_of();
  options.epochs = 1;
  options.threads = 4;
  options.dealing = Dealing::in_turns;
  TorchTrainer trainer(
      [&] {
        instances.push_back(std::make_shared<Counter>());
        return make_model(instances.back());
      },
      cross_entropy_loss(), dataset(), Trace::constant(4), options);
  trainer.fit();
  // And the one of the trial.
  ASSERT_EQ(instances.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(instances[i]->calls, 3) << "steps of one minibatch";
}

}  // namespace
}  // namespace rubato
