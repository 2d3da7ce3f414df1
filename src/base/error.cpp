#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace weft {

InternalError::InternalError(const std::string& message, std::source_location where)
    : Error(fmt::format("{} (at {}:{})", message, where.file_name(), where.line())) {}

std::string system_error_text() { return std::generic_category().message(errno); }

}  // namespace weft
