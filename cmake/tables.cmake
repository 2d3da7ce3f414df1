# Tables made from the files of a folder: to add an entry is to add a file, and no list is kept.
#
# weft_table(FILE path FOLDERS folder... [EXCEPT name...] HEADER header ENTRY type ACCESS function FUNCTION name
#            ARGUMENT type FIELDS field...)
#
# Writes a source that declares one function per .cpp file of the folders, `void FUNCTION(ARGUMENT);`, and defines
# `std::span<const ENTRY> ACCESS()` over {FIELDS..., function}, in the order of folder and file name. In FUNCTION and
# FIELDS @stem@ is the file's name without its ending, @folder@ the last part of its folder's name. A file that does not
# define its function fails at the link, by that name.
#
# weft_declarations(FILE path FOLDERS folder... [EXCEPT name...] HEADER header DECLARATION text)
#
# Writes a header that includes HEADER and holds the text once per file.

function(weft_write_if_changed path text)
  file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
endfunction()

# Sets ${out} to the template with @stem@ and @folder@ replaced, for one source.
function(weft_fill out template source)
  get_filename_component(stem ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  string(REPLACE "@stem@" "${stem}" text "${template}")
  string(REPLACE "@folder@" "${folder}" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(weft_table)
  cmake_parse_arguments(PARSE_ARGV 0 table "" "FILE;HEADER;ENTRY;ACCESS;FUNCTION;ARGUMENT" "FOLDERS;EXCEPT;FIELDS")
  set(declarations "")
  set(rows "")
  set(count 0)
  foreach(folder IN LISTS table_FOLDERS)
    weft_sources(sources IN ${folder} EXCEPT ${table_EXCEPT})
    foreach(source IN LISTS sources)
      weft_fill(function "${table_FUNCTION}" ${source})
      string(APPEND declarations "void ${function}(${table_ARGUMENT});\n")
      set(row "")
      foreach(field IN LISTS table_FIELDS)
        weft_fill(field "${field}" ${source})
        string(APPEND row "\"${field}\", ")
      endforeach()
      string(APPEND rows "    {${row}${function}},\n")
      math(EXPR count "${count} + 1")
    endforeach()
  endforeach()
  if(count EQUAL 0)
    set(array "constexpr std::array<${table_ENTRY}, 0> kEntries{};\n")
  else()
    set(array "constexpr std::array<${table_ENTRY}, ${count}> kEntries{{\n${rows}}};\n")
  endif()
  weft_write_if_changed(${table_FILE} "// Made by the build from the files of: ${table_FOLDERS}

#include \"${table_HEADER}\"

#include <array>
#include <span>

namespace weft {

${declarations}
namespace {

${array}
}  // namespace

std::span<const ${table_ENTRY}> ${table_ACCESS}() { return kEntries; }

}  // namespace weft
")
endfunction()

function(weft_declarations)
  cmake_parse_arguments(PARSE_ARGV 0 list "" "FILE;HEADER;DECLARATION" "FOLDERS;EXCEPT")
  set(declarations "")
  foreach(folder IN LISTS list_FOLDERS)
    weft_sources(sources IN ${folder} EXCEPT ${list_EXCEPT})
    foreach(source IN LISTS sources)
      weft_fill(declaration "${list_DECLARATION}" ${source})
      string(APPEND declarations "${declaration}\n")
    endforeach()
  endforeach()
  weft_write_if_changed(${list_FILE} "#pragma once

// Made by the build from the files of: ${list_FOLDERS}

#include \"${list_HEADER}\"

namespace weft {

${declarations}
}  // namespace weft
")
endfunction()
