#include "base/error.h"

#include <cerrno>
#include <string_view>
#include <system_error>

namespace weft {

namespace {

std::string with_place(std::string_view message, const std::source_location& where) {
  return fmt::format("{} (at {}:{})", message, where.file_name(), where.line());
}

}  // namespace

InternalError::InternalError(const std::string& message, std::source_location where)
    : Error(with_place(message, where)) {}

void UserError::set_place(const std::source_location& where) { text_ = with_place(Error::what(), where); }

std::string system_error_text() { return std::generic_category().message(errno); }

}  // namespace weft
