#include <fnmatch.h>

#include <rubato/loop/optimizer.hpp>

namespace rubato {

namespace {

constexpr GroupOptions kNoDecay{.weight_decay = 0.0, .layer_wise = false};

}  // namespace

ParameterGroup no_decay_for_vectors() {
  return {.name = "vectors",
          .takes = [](const NamedArray& named) { return named.shape.size() <= 1; },
          .options = kNoDecay};
}

ParameterGroup no_decay_for(const std::string& pattern) {
  return {.name = pattern,
          .takes =
              [pattern](const NamedArray& named) {
                return fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0;
              },
          .options = kNoDecay};
}

}  // namespace rubato
