# rubato_module(name [TORCH] [COLD] SOURCES ... HEADERS ... LINKS ... PRIVATE_LINKS ...)
#
# One module of a room (docs/architecture.md): a library `rubato_<name>`, known as rubato::<name> to the project and to
# its users. Its public headers are in include/rubato/<room> and installed; those of the project itself lie beside the
# sources, in src/<room>/<name>. LINKS names what its headers need, PRIVATE_LINKS what only its sources need. TORCH puts
# it below the libtorch line: it is exported apart from the others, so that those can be found without libtorch. COLD:
# what it does, it does once and not once a step, so that it is compiled quickly rather than well.
function(rubato_module name)
  cmake_parse_arguments(arg "TORCH;COLD" "" "SOURCES;HEADERS;LINKS;PRIVATE_LINKS" ${ARGN})
  set(target rubato_${name})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH room)
  cmake_path(GET room FILENAME room)
  list(TRANSFORM arg_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/include/rubato/${room}/")
  if(arg_SOURCES)
    add_library(${target} ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:rubato_build> ${arg_PRIVATE_LINKS})
    if(arg_COLD)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:rubato_cold>)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(rubato::${name} ALIAS ${target})
  target_sources(${target} ${scope} FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${arg_HEADERS})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)

  # Known to RubatoInstall.
  if(arg_TORCH)
    set_property(GLOBAL APPEND PROPERTY RUBATO_TORCH_MODULES ${name})
  else()
    set_property(GLOBAL APPEND PROPERTY RUBATO_MODULES ${name})
  endif()
endfunction()
