#pragma once

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

/// A transformer encoder of the rows of an image, each of which is a token that sees all others.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options, const ImageShape& shape);

/// A transformer encoder of token ids; no token sees later ones, so that the class of a token may
/// be the next token.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options,
                                       const SequenceShape& shape);

}  // namespace rubato
