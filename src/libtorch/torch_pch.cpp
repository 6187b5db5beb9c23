// Empty: its target exists for torch_pch.hpp.
