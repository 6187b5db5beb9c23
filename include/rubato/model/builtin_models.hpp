#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <rubato/model/model.hpp>

namespace rubato {

/// The shape of an image and the number of classes.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

/// A sequence of token ids, each of which is of a class.
struct SequenceShape {
  /// Token ids in a sequence, at least 1.
  std::int64_t tokens = 1;
  /// Ids are from 0 to below this.
  std::int64_t vocabulary = 1;
  std::int64_t classes = 1;
};

/// The names that builtin_model() accepts.
[[nodiscard]] std::span<const std::string_view> builtin_model_names();

/// A built-in model, with its arguments where it takes some ("mlp:hidden=64"). All map [batch,
/// channels, height, width] to log-probabilities [batch, classes].
///
///   mnist-cnn  conv 5x5 to 10 channels, max-pool 2, relu, batch norm, conv 5x5 to 20 channels,
///              max-pool 2, relu, batch norm, linear to 50, relu, linear: PyTorch's classic MNIST
///              network. 1 x 28 x 28 only.
///   mlp        linear to 128, relu, linear to 64, relu, linear; or as PerceptronOptions say
///   softmax    linear: multinomial logistic regression
///   toy-net    conv 3x3 to 64, to 128, max-pool 2, conv 3x3 to 256, to 512, max-pool 2, linear to
///              512, linear; batch norm and relu behind all but the last. 5.8 million parameters on
///              28 x 28; at least 16 x 16
///   resnet20   the residual network of 20 layers of He et al. 2016; ResidualOptions
///   transformer  an encoder whose tokens are the rows of the image; TransformerOptions
///
/// Each has a twin in Python that loads its weights (docs/models.md).
///
/// Throws Error for an unknown name, naming the nearest, for arguments that it does not take, and
/// for a shape that the model cannot take.
[[nodiscard]] ModelFactory builtin_model(std::string_view model, const ImageShape& shape);

/// A built-in model of real targets: it maps [batch, ...] of `inputs` numbers to [batch, outputs].
/// Only mlp is one, without the log-softmax. Throws Error as builtin_model() does, and for models
/// that tell classes apart.
[[nodiscard]] ModelFactory regression_model(std::string_view model, std::int64_t inputs,
                                            std::int64_t outputs);

/// A built-in model of sequences: it maps token ids, int64 [batch, tokens], to log-probabilities
/// [batch, tokens, classes]. Only the transformer is one; no token sees those behind it, so that
/// the class of a token may be the next token. Throws Error as builtin_model() does, and for models
/// of images.
[[nodiscard]] ModelFactory sequence_model(std::string_view model, const SequenceShape& shape);

}  // namespace rubato
