# What `cmake --install` copies: headers, libraries, programs, and the package for find_package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rubato")

# Two export sets, so that the modules without libtorch can be found without libtorch.
get_property(modules GLOBAL PROPERTY RUBATO_MODULES)
get_property(torch_modules GLOBAL PROPERTY RUBATO_TORCH_MODULES)
list(TRANSFORM modules PREPEND rubato_ OUTPUT_VARIABLE targets)
list(TRANSFORM torch_modules PREPEND rubato_ OUTPUT_VARIABLE torch_targets)
install(TARGETS ${targets} EXPORT rubatoTargets FILE_SET HEADERS)
install(EXPORT rubatoTargets NAMESPACE rubato:: DESTINATION "${package_dir}")
if(torch_modules)
  install(TARGETS rubato_libtorch ${torch_targets} EXPORT rubatoTorchTargets FILE_SET HEADERS)
  install(EXPORT rubatoTorchTargets NAMESPACE rubato:: DESTINATION "${package_dir}")
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/rubatoConfig.cmake.in" "${PROJECT_BINARY_DIR}/rubatoConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/rubatoConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/rubatoConfig.cmake" "${PROJECT_BINARY_DIR}/rubatoConfigVersion.cmake"
  DESTINATION "${package_dir}")

# The command, and the part of it that loads libtorch, which the command finds from its own place.
if(TARGET rubato)
  install(TARGETS rubato COMPONENT programs)
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    install(DIRECTORY "${PROJECT_BINARY_DIR}/share/" TYPE DATA COMPONENT programs)
  endif()
endif()
if(TARGET rubato-train)
  install(TARGETS rubato-train DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/rubato" COMPONENT programs)
endif()

if(RUBATO_TESTS)
  add_subdirectory(tests/package)
endif()
