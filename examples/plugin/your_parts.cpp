// A plug-in: a rule, a sampler and a data set of your own, for every command of `rubato`.
//
//     cmake -S . -B build && cmake --build build
//     rubato train --plugin build/libyour_parts.so --data rings:noise=0.1 --model mlp --rule log2

#include <cmath>
#include <numbers>
#include <numeric>

#include <rubato/loop/images.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/random.hpp>

namespace {

// Points of two rings, of radius 1 and 2.
rubato::OwnData::Samples rings(std::int64_t count, double noise, std::uint64_t seed) {
  const rubato::NormalNumbers normal({.seed = seed});
  rubato::OwnData::Samples samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * std::numbers::phi * static_cast<double>(i);
    const double radius =
        1 + static_cast<double>(i % 2) + noise * normal[static_cast<std::size_t>(i)];
    samples.inputs.push_back(static_cast<float>(radius * std::cos(angle)));
    samples.inputs.push_back(static_cast<float>(radius * std::sin(angle)));
    samples.labels.push_back(i % 2);
  }
  return samples;
}

rubato::Sampler rotated(std::int64_t by) {
  return {.name = "rotated by " + std::to_string(by), .order = [by](const rubato::EpochDraw& draw) {
            std::vector<std::int64_t> list(static_cast<std::size_t>(draw.samples));
            std::iota(list.begin(), list.end(), by * draw.epoch.value());
            for (std::int64_t& sample : list) sample %= draw.samples;
            return list;
          }};
}

}  // namespace

RUBATO_PLUGIN(extensions) {
  extensions.rules.add(
      "log2", [](const rubato::RuleInput& step) { return std::log2(1 + step.scale()); },
      "log2(1 + S) lr");
  extensions.samplers.add(
      "rotated", [](rubato::Spec& spec) { return rotated(spec.whole("by", 1, 0, 1'000'000)); },
      "the order of the data, in each epoch from another sample on");
  extensions.data.add(
      "rings",
      [](rubato::Spec& spec) {
        const double noise = spec.real("noise", 0.2, rubato::kNotNegative);
        return rubato::OwnDataSource{[noise] {
          return rubato::OwnData{.shape = {2},
                                 .classes = 2,
                                 .train = rings(4096, noise, 1),
                                 .test = rings(1024, noise, 2)};
        }};
      },
      "points of two rings in the plane, which are to be told apart");
}
