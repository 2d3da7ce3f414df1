# Libraries of the distribution, joined in one target that every layer sees; the linker drops what a program does not
# use.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_library(WEFT_PCRE2 pcre2-8 REQUIRED)
find_library(WEFT_UTF8PROC utf8proc REQUIRED)
find_library(WEFT_XXHASH xxhash REQUIRED)

add_library(weft_libraries INTERFACE)
target_link_libraries(
  weft_libraries
  INTERFACE Threads::Threads fmt::fmt spdlog::spdlog simdjson::simdjson nlohmann_json::nlohmann_json CLI11::CLI11
            ${WEFT_PCRE2} ${WEFT_UTF8PROC} ${WEFT_XXHASH} ${CMAKE_DL_LIBS})
