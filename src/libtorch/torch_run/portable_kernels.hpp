#pragma once

#include <rubato/runs/records.hpp>

namespace rubato {

/// Throws Error if the kernels in use are not those that --kernels portable promises.
void require_portable_kernels(const EngineFacts::Facts& in_use);

}  // namespace rubato
