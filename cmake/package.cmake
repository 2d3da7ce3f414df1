# The C++ interface as a package, for programs outside the tree (docs/capture.md):
#
#   find_package(weft CONFIG REQUIRED)
#   target_link_libraries(program PRIVATE weft::compile)
#
# The libraries are the static ones of the build, those that weft/compile.h needs; a program of the package finds
# libweft_llvm.so through its runpath. The headers are those that weft/compile.h reaches.

include(CMakePackageConfigHelpers)

# The libraries of the tree that a target links, itself included.
function(weft_collect_libraries out target)
  list(APPEND ${out} ${target})
  get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS linked)
    if(library MATCHES "^weft_" AND NOT library IN_LIST ${out})
      weft_collect_libraries(${out} ${library})
    endif()
  endforeach()
  set(${out} ${${out}} PARENT_SCOPE)
endfunction()

add_library(weft_compile INTERFACE)
target_link_libraries(weft_compile INTERFACE weft_builtin weft_capture)
target_compile_features(weft_compile INTERFACE cxx_std_20)
target_include_directories(weft_compile INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
target_link_options(weft_compile INTERFACE
                    $<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>)
set_target_properties(weft_compile PROPERTIES EXPORT_NAME compile)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
set(package_libraries "")
weft_collect_libraries(package_libraries weft_compile)
install(TARGETS ${package_libraries} EXPORT weft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${package_folder})

# The archives hold what the headers of these versions made.
set(WEFT_DEPENDENCIES "")
foreach(package IN LISTS WEFT_PACKAGES)
  if(${package}_VERSION)
    string(APPEND WEFT_DEPENDENCIES "find_dependency(${package} ${${package}_VERSION} EXACT)\n")
  else()
    string(APPEND WEFT_DEPENDENCIES "find_dependency(${package})\n")
  endif()
endforeach()
string(REGEX MATCH "^[0-9]+" WEFT_COMPILER_MAJOR ${CMAKE_CXX_COMPILER_VERSION})
configure_package_config_file(cmake/weft-config.cmake.in ${WEFT_GENERATED}/weft-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${WEFT_GENERATED}/weft-config-version.cmake COMPATIBILITY ExactVersion)
install(FILES ${WEFT_GENERATED}/weft-config.cmake ${WEFT_GENERATED}/weft-config-version.cmake
        DESTINATION ${package_folder})

install(CODE "
  set(roots \"${CMAKE_SOURCE_DIR}/src;${CMAKE_SOURCE_DIR}/include;${WEFT_GENERATED}\")
  set(into \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT cmake/install_headers.cmake)
