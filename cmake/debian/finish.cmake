# CPack runs this when the files of all packages lie in their folders: it adds what Debian asks of each, the licence and
# the changelog, and compresses the changelog and the manual pages. With SOURCE_DATE_EPOCH, always to the same bytes.
find_program(gzip gzip REQUIRED)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/copyright" DESTINATION "${share}/doc/${name}")
  file(WRITE "${share}/doc/${name}/changelog.Debian"
    "rubato (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * CHANGELOG.md, in the package rubato-doc, says what is new in this version.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB pages "${share}/man/man*/*")
  execute_process(COMMAND "${gzip}" --best --no-name ${pages} "${share}/doc/${name}/changelog.Debian"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
