#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include "libtorch/model/dispatch_scopes.hpp"

namespace rubato {
namespace {

constexpr StreamKey kKey{.seed = 7, .epoch = 1, .step = 30, .minibatch = 4};

using Draw = std::function<at::Tensor()>;

// Operators that draw, each in its own way.
std::map<std::string, Draw> draws() {
  const at::Tensor x = at::ones({40});
  return {{"dropout", [x] { return at::dropout(x, 0.5, true); }},
          {"feature_dropout",
           [x] {
             return at::feature_dropout(x.reshape({4, 10}), 0.5, true);
           }},
          {"alpha_dropout", [x] { return at::alpha_dropout(x, 0.5, true); }},
          {"rand", [] { return at::rand({8}); }},
          {"randn", [] { return at::randn({8}); }},
          {"randn_like", [x] { return at::randn_like(x); }},
          {"randint", [] { return at::randint(100, {8}); }},
          {"randperm", [] { return at::randperm(20); }},
          {"bernoulli", [x] { return at::bernoulli(x * 0.5); }},
          {"bernoulli_", [x] { return x.clone().bernoulli_(0.5); }},
          {"uniform_", [x] { return x.clone().uniform_(); }},
          {"normal_", [x] { return x.clone().normal_(); }},
          {"exponential_", [x] { return x.clone().exponential_(); }},
          {"multinomial", [x] { return at::multinomial(x, 5); }},
          {"rrelu", [x] { return at::rrelu(-x, 0.1, 0.3, true); }}};
}

at::Tensor drawn(const StreamKey& key, const Draw& draw) {
  RandomStream stream;
  const RandomStream::Scope scope = stream.begin(key);
  return draw();
}

TEST(RandomStream, GivesTheSameNumbersWhateverWasDrawnBefore) {
  for (const auto& [name, draw] : draws()) {
    SCOPED_TRACE(name);
    at::manual_seed(1);
    const at::Tensor first = drawn(kKey, draw);
    at::manual_seed(2);
    static_cast<void>(at::rand({3}));
    EXPECT_TRUE(at::equal(drawn(kKey, draw), first));
    at::Tensor elsewhere;
    std::thread([&, &its_draw = draw] { elsewhere = drawn(kKey, its_draw); }).join();
    EXPECT_TRUE(at::equal(elsewhere, first)) << "on another thread";
  }
}

TEST(RandomStream, DependsOnEveryPartOfItsKey) {
  const Draw draw = [] { return at::rand({8}); };
  std::vector<StreamKey> keys(5, kKey);
  ++keys[1].seed;
  ++keys[2].epoch;
  ++keys[3].step;
  ++keys[4].minibatch;
  std::set<float> firsts;
  for (const StreamKey& key : keys) firsts.insert(drawn(key, draw)[0].item<float>());
  EXPECT_EQ(firsts.size(), keys.size());
}

TEST(RandomStream, LeavesLibtorchsGeneratorAlone) {
  for (const auto& [name, draw] : draws()) {
    at::manual_seed(1);
    const at::Tensor expected = at::rand({3});
    at::manual_seed(1);
    static_cast<void>(drawn(kKey, draw));
    EXPECT_TRUE(at::equal(at::rand({3}), expected)) << name;
  }
}

TEST(RandomStream, EndsWithItsScopeAndNests) {
  const auto next = [] { return at::rand({1}).item<float>(); };
  at::manual_seed(1);
  const float plain = next();
  RandomStream outer;
  RandomStream inner;
  at::manual_seed(1);
  float before = 0;
  float after = 0;
  {
    const RandomStream::Scope scope = outer.begin(kKey);
    before = next();
    {
      const RandomStream::Scope nested = inner.begin({.seed = 99});
      EXPECT_NE(next(), before);
    }
    after = next();
  }
  EXPECT_EQ(next(), plain);
  // The outer stream went on where it was.
  const RandomStream::Scope again = outer.begin(kKey);
  EXPECT_EQ(next(), before);
  EXPECT_EQ(next(), after);
}

TEST(RandomStream, LeavesAGivenGeneratorInItsPlace) {
  const auto with = [](std::uint64_t seed) {
    const at::Generator own = at::make_generator<at::CPUGeneratorImpl>(seed);
    return at::rand({3}, own);
  };
  const at::Tensor expected = with(5);
  EXPECT_TRUE(at::equal(drawn(kKey, [&] { return with(5); }), expected));
}

TEST(RandomStream, DrawsTheSameInBackward) {
  const auto gradient = [] {
    const at::Tensor x = at::ones({40}).requires_grad_();
    at::dropout(x, 0.5, true).sum().backward();
    return x.grad();
  };
  const at::Tensor first = drawn(kKey, gradient);
  EXPECT_TRUE(at::equal(drawn(kKey, gradient), first));
  EXPECT_GT(first.max().item<float>(), 0);
  EXPECT_EQ(first.min().item<float>(), 0);
}

}  // namespace
}  // namespace rubato
