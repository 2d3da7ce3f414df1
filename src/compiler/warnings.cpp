#include "compiler/warnings.h"

#include <iostream>
#include <utility>

#include "compiler/log.h"

namespace weft {
namespace {

// Of the innermost scope; empty outside of every scope.
thread_local WarningSink scoped_sink;

void print_warning(const std::string& sentence) { std::cerr << "weft: " + sentence + "\n"; }

}  // namespace

WarningSink current_warning_sink() { return scoped_sink ? scoped_sink : print_warning; }

WarningScope::WarningScope(WarningSink sink) : before_(std::exchange(scoped_sink, std::move(sink))) {}

WarningScope::~WarningScope() { scoped_sink = std::move(before_); }

void warn(const Log& log, const std::string& sentence) { log.say("warnings", Log::Detail::some, sentence); }

}  // namespace weft
