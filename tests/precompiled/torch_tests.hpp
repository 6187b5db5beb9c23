// Precompiled for the test programs that use libtorch.
#pragma once

#include "precompiled/tests.hpp"
#include "torch_pch.hpp"
