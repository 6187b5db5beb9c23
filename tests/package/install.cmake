# Installs the build tree afresh: into one place, and from there it moves to another, since a package
# must not remember where it was installed.
file(REMOVE_RECURSE "${WORK_DIR}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}"
          --prefix "${WORK_DIR}/first_place"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${WORK_DIR}/first_place" "${PREFIX}")
