#pragma once

#include "base/error.h"

namespace weft {

// The words of the error that the call throws, "" where it throws none. Errors of another kind are not caught.
template <class Kind = UserError, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

}  // namespace weft
