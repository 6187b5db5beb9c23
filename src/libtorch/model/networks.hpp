#pragma once

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

/// Gives the parameters of `model` new values, drawn from libtorch's generator in the order of
/// their declaration (InitializerOptions says which parameters get what).
void initialize(const Model& model, const InitializerOptions& options);

/// The residual network of 20 layers of He et al. 2016, for images of any size.
[[nodiscard]] ModelFactory residual_network(const ResidualOptions& options,
                                            const ImageShape& shape);

/// A transformer encoder of the rows of an image, each of which is a token that sees all others.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options, const ImageShape& shape);

/// A transformer encoder of token ids; no token sees later ones, so that the class of a token may
/// be the next token.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options,
                                       const SequenceShape& shape);

}  // namespace rubato
