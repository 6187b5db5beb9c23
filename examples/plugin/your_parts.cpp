// A plug-in: a rule, a sampler and a data set of your own, for every command of `rubato`.
//
//     cmake -S . -B build && cmake --build build
//     rubato train --plugin build/libyour_parts.so --data rings:noise=0.1 --model mlp --rule log2

#include <cmath>
#include <string>
#include <vector>

#include <rubato/loop/images.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/random.hpp>

using namespace rubato;

namespace {

// Returns points of two rings, of radius 1 and 2.
OwnData::Samples rings(std::int64_t count, double noise, std::uint64_t seed) {
  const NormalNumbers normal({.seed = seed});
  OwnData::Samples samples;
  for (int i = 0; i < count; ++i) {
    const double radius = 1 + i % 2 + noise * normal[static_cast<std::size_t>(i)];
    for (const double unit : {std::cos(i), std::sin(i)}) {
      samples.inputs.push_back(static_cast<float>(radius * unit));
    }
    samples.labels.push_back(i % 2);
  }
  return samples;
}

std::vector<std::int64_t> rotated(const EpochDraw& draw, std::int64_t by) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < draw.samples; ++i) {
    order.push_back((i + by * draw.epoch.value()) % draw.samples);
  }
  return order;
}

}  // namespace

RUBATO_PLUGIN(extensions) {
  const auto log2 = [](const RuleInput& step) { return std::log2(1 + step.scale()); };
  extensions.rules.add("log2", log2, "log2(1 + S) lr");

  const auto sampler = [](Spec& spec) {
    const std::int64_t by = spec.whole("by", 1, 0, 1'000'000);
    return Sampler{"rotated by " + std::to_string(by),
                   [by](const EpochDraw& draw) { return rotated(draw, by); }};
  };
  extensions.samplers.add("rotated", sampler, "begins each epoch at another sample");

  const auto data = [](Spec& spec) {
    const double noise = spec.real("noise", 0.2, kNotNegative);
    return OwnDataSource{[noise] {
      return OwnData{.shape = {2},
                     .classes = 2,
                     .train = rings(4096, noise, 1),
                     .test = rings(1024, noise, 2)};
    }};
  };
  extensions.data.add("rings", data, "points of two rings in the plane, to be distinguished");
}
