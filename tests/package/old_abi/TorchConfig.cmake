# A libtorch as PyTorch built it for old systems, as far as find_package(Torch) shows it.
set(Torch_FOUND TRUE)
set(TORCH_INSTALL_PREFIX "/opt/libtorch")
set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")
