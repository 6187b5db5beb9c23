#pragma once

#include <rubato/runs/records.hpp>

namespace rubato {

/// Throws Error when the kernels in use are not what --kernels portable promises.
void require_portable_kernels(const EngineFacts::Facts& in_use);

}  // namespace rubato
