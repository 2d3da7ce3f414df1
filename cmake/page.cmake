# The server's page: src/server/page/ as one HTML text in the program, and a content security policy that allows this
# script alone, by its hash.

# Base64 of bytes that are given as hexadecimal digits. CMake has hashes in this form alone.
function(weft_base64_of_hex out hex)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  string(LENGTH ${hex} digits)
  foreach(at RANGE 0 ${digits} 6)
    if(at EQUAL digits)
      break()
    endif()
    string(SUBSTRING ${hex} ${at} 6 group)
    string(LENGTH ${group} length)
    string(SUBSTRING "${group}0000" 0 6 group)
    # 2, 4 or 6 digits are 2, 3 or 4 characters.
    math(EXPR last "${length} / 2")
    foreach(i RANGE 0 ${last})
      math(EXPR index "(0x${group} >> (18 - 6 * ${i})) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 character)
      string(APPEND text ${character})
    endforeach()
    if(length LESS 6)
      math(EXPR missing "3 - ${length} / 2")
      string(REPEAT "=" ${missing} padding)
      string(APPEND text ${padding})
    endif()
  endforeach()
  set(${out} ${text} PARENT_SCOPE)
endfunction()

set(folder ${CMAKE_SOURCE_DIR}/src/server/page)
foreach(name page.html page.css markdown.js page.js)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
  file(READ ${folder}/${name} text_of_${name})
endforeach()
set(script "${text_of_markdown.js}${text_of_page.js}")
string(REPLACE "@STYLE@" "${text_of_page.css}" page "${text_of_page.html}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(SHA256 hash "${script}")
weft_base64_of_hex(hash ${hash})
weft_write_if_changed(${WEFT_GENERATED}/page.cpp "// Made by the build from src/server/page

#include \"server/page/page.h\"

namespace weft {

const std::string_view kPage = R\"page(${page})page\";
const std::string_view kPageScriptHash = \"sha256-${hash}\";

}  // namespace weft
")
target_sources(weft_server PRIVATE ${WEFT_GENERATED}/page.cpp)

# In Chromium, where there is one.
enable_testing()
if(Python3_FOUND AND NOT WEFT_SANITIZE)
  add_test(NAME page COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/server/page/page_check.py
                             $<TARGET_FILE:weft> ${CMAKE_SOURCE_DIR}/tests/data/models/qwen3)
  set_tests_properties(page PROPERTIES LABELS fast TIMEOUT 300 SKIP_REGULAR_EXPRESSION "is skipped")
endif()
