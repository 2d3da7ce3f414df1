#pragma once

#include <fmt/core.h>  // has it all
