#pragma once

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

/// A transformer encoder of the rows of an image, each of which is a token that sees all others.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options, const ImageShape& shape);

/// A transformer encoder of token ids, none of which sees those behind it: what it says of a token
/// may be the next one.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options,
                                       const SequenceShape& shape);

}  // namespace rubato
