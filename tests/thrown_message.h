#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weft {

// The message of the error that the call throws, "" if it throws none. Errors of another kind are not caught.
template <class Kind = UserError, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

// The same without the file and line of the calling code, which are at the end: `... (at test.cpp:12)`.
template <class Kind = UserError, class Call>
std::string plain_message_of(Call&& call) {
  const std::string message = message_of<Kind>(std::forward<Call>(call));
  return message.substr(0, message.rfind(" (at "));
}

// "" if the message names all parts, else which one it lacks.
inline std::string missing_part(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (message.find(part) == std::string::npos) return "lacks " + part + ": [" + message + "]";
  return "";
}

}  // namespace weft
