#pragma once

#include <functional>
#include <string>

#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/state/named_array.hpp>

namespace rubato {

/// Parameters that are treated differently. A parameter belongs to the first group that takes it;
/// those that no group takes are a group of their own, number 0, with nothing different.
struct ParameterGroup {
  std::string name;
  std::function<bool(const NamedArray&)> takes;
  GroupOptions options{};
};

/// The common group of parameters that must not decay: those of one dimension, which are biases
/// and the scales and shifts of normalisation. Layer-wise rates leave them alone, too.
[[nodiscard]] ParameterGroup no_decay_for_vectors();

/// A group without decay of the parameters whose name matches a shell pattern ("*.bias").
[[nodiscard]] ParameterGroup no_decay_for(const std::string& pattern);

}  // namespace rubato
