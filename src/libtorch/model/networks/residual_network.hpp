#pragma once

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>

namespace rubato {

/// The residual network of 20 layers of He et al. 2016, for images of any size.
[[nodiscard]] ModelFactory residual_network(const ResidualOptions& options,
                                            const ImageShape& shape);

}  // namespace rubato
