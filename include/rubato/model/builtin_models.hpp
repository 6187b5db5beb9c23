#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <rubato/model/model.hpp>

namespace rubato {

/// The shape of one sample and the number of classes.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

/// The names that builtin_model() accepts.
[[nodiscard]] std::span<const std::string_view> builtin_model_names();

/// A built-in model. All map [batch, channels, height, width] to log-probabilities [batch,
/// classes].
///
///   mnist-cnn  conv 5x5 to 10 channels, max-pool 2, relu, batch norm, conv 5x5 to 20 channels,
///              max-pool 2, relu, batch norm, linear to 50, relu, linear: PyTorch's classic MNIST
///              network. 1 x 28 x 28 only.
///   mlp        linear to 128, relu, linear to 64, relu, linear
///   softmax    linear: multinomial logistic regression
///   toy-net    conv 3x3 to 64, to 128, max-pool 2, conv 3x3 to 256, to 512, max-pool 2, linear to
///              512, linear; batch norm and relu behind all but the last. 5.8 million parameters on
///              28 x 28; at least 16 x 16
///
/// Each has a twin in Python that loads its weights (docs/models.md).
///
/// Throws Error for an unknown name, naming the nearest, and for a shape that the model cannot
/// take.
[[nodiscard]] ModelFactory builtin_model(std::string_view name, const ImageShape& shape);

}  // namespace rubato
