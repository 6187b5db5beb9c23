// Precompiled for the test programs that use libtorch.
#pragma once

#include "libtorch/torch_pch.hpp"
#include "precompiled/tests.hpp"
