#include "capi/boundary.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/utf8.h"
#include "base/version.h"

namespace weft {
namespace {

int report(weft_error* error, int status, std::string_view text) noexcept {
  if (error == nullptr) return status;
  std::string_view kept = text.substr(0, sizeof error->text - 1);
  if (kept.size() < text.size()) kept.remove_suffix(incomplete_utf8_suffix(kept));
  error->status = status;
  if (!kept.empty()) std::memcpy(error->text, kept.data(), kept.size());
  error->text[kept.size()] = '\0';
  return status;
}

}  // namespace

int report_success(weft_error* error) noexcept { return report(error, WEFT_SUCCESS, ""); }

int report_exception(weft_error* error) noexcept {
  try {
    throw;
  } catch (const Error& failure) {
    return report(error, failure.exit_code(), failure.what());
  } catch (const std::bad_alloc&) {
    return report(error, WEFT_DEVICE_ERROR, "[memory] the system has no more");
  } catch (const std::exception& failure) {
    return report(error, WEFT_INTERNAL_ERROR, failure.what());
  } catch (...) {
    return report(error, WEFT_INTERNAL_ERROR, "[weft] something was thrown that is not an exception");
  }
}

std::string given_text(const char* text, std::string_view function, std::string_view argument) {
  std::string copy = &given(text, function, argument);
  const auto bad = first_invalid_utf8(copy);
  USER_CHECK(!bad, "[{}] {} must be UTF-8, but is not from byte {} on", function, argument, *bad);
  return copy;
}

std::vector<std::string> given_texts(const char* const* texts, std::size_t count, std::string_view function,
                                     std::string_view argument) {
  std::vector<std::string> copies;
  if (count > 0) given(texts, function, argument);
  for (std::size_t i = 0; i < count; ++i)
    copies.push_back(given_text(texts[i], function, fmt::format("{}[{}]", argument, i)));
  return copies;
}

char* text_for_caller(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

HandleMutex::Lock::Lock(HandleMutex& mutex, std::string_view function) : owner_(mutex) {
  USER_CHECK(mutex.user_.load() != std::this_thread::get_id(),
             "[{}] must not be called from the callback of the same handle", function);
  mutex.mutex_.lock();
  mutex.user_.store(std::this_thread::get_id());
}

HandleMutex::Lock::~Lock() {
  owner_.user_.store(std::thread::id());
  owner_.mutex_.unlock();
}

}  // namespace weft

extern "C" {

uint32_t weft_abi_version(void) { return WEFT_ABI_VERSION; }

const char* weft_version(void) { return weft::kVersion; }

void weft_text_free(char* text) { std::free(text); }
}
