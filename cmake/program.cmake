# The program `weft`: everything of apps/cli but main.cpp is a library, so that tests can link it, too.

weft_table(
  FILE ${WEFT_GENERATED}/verb_table.cpp
  FOLDERS apps/cli/verbs
  HEADER apps/cli/verb.h ENTRY VerbEntry ACCESS verb_table
  FUNCTION define_verb_@stem@ ARGUMENT VerbTable& FIELDS @stem@)

weft_sources(sources BELOW apps/cli EXCEPT main.cpp)
add_library(weft_cli STATIC ${sources} ${WEFT_GENERATED}/verb_table.cpp)
target_link_libraries(weft_cli PUBLIC weft_all)
weft_precompiled(weft_cli)
weft_grouped(weft_cli)
weft_runs_once(weft_cli)
if(TARGET weft_llvm)
  add_dependencies(weft_cli weft_llvm)  # opened when code is generated
endif()

add_executable(weft apps/cli/main.cpp)
target_link_libraries(weft PRIVATE weft_cli)
set_target_properties(weft PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

include(GNUInstallDirs)
install(TARGETS weft)
install(TARGETS weft_shared LIBRARY)
install(FILES include/weft/weft_plugin.h src/capi/weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
# The program writes its own completion scripts.
foreach(script bash:bash-completion/completions/weft fish:fish/vendor_completions.d/weft.fish
               zsh:zsh/site-functions/_weft)
  string(REPLACE ":" ";" script ${script})
  list(GET script 0 shell)
  list(GET script 1 path)
  install(CODE "
    set(path \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/${path}\")
    get_filename_component(folder \"\${path}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"${CMAKE_BINARY_DIR}/weft\" completion ${shell}
                    OUTPUT_FILE \"\${path}\" COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS \"Installing: \${path}\")")
endforeach()
