#pragma once

// For Driver's sources: maps a handle to the backend's object, and makes the device of a call current.

#include <type_traits>

#include <fmt/core.h>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

template <class Object>
inline constexpr const char* kObjectName = "";
template <>
inline constexpr const char* kObjectName<StreamObject> = "stream";
template <>
inline constexpr const char* kObjectName<EventObject> = "event";
template <>
inline constexpr const char* kObjectName<ModuleObject> = "module";
template <>
inline constexpr const char* kObjectName<FunctionObject> = "function";
template <>
inline constexpr const char* kObjectName<GraphObject> = "graph";
template <>
inline constexpr const char* kObjectName<ExecutableObject> = "executable graph";

// Makes a device current for a call that names none, and restores the previous device afterwards.
class Driver::OnDevice {
 public:
  OnDevice(Driver& driver, int device, const char* call) : driver_(driver), before_(driver.current_device()) {
    driver.check_device(device, call);
    if (device == before_) return;
    driver.check(driver.calls_->set_current(device), "cuCtxSetCurrent", device);
    is_changed_ = true;
  }
  ~OnDevice() {
    if (is_changed_) driver_.calls_->set_current(before_);
  }

 private:
  Driver& driver_;
  int before_;
  bool is_changed_ = false;
};

template <class Object>
Driver::Objects<Object>& Driver::objects() {
  if constexpr (std::is_same_v<Object, StreamObject>) return streams_;
  if constexpr (std::is_same_v<Object, EventObject>) return events_;
  if constexpr (std::is_same_v<Object, ModuleObject>) return modules_;
  if constexpr (std::is_same_v<Object, FunctionObject>) return functions_;
  if constexpr (std::is_same_v<Object, GraphObject>) return graphs_;
  if constexpr (std::is_same_v<Object, ExecutableObject>) return executables_;
}

template <class Object>
Handle<Object> Driver::add(int device, Object* object) {
  const std::lock_guard lock(mutex_);
  objects<Object>()[++last_number_] = {device, object};
  return {device, last_number_};
}

template <class Object>
Object* Driver::find(Handle<Object> handle, const char* call) {
  check_device(handle.device, call);
  if constexpr (std::is_same_v<Object, StreamObject>) {
    if (handle.number == 0) {
      StreamObject* stream = nullptr;
      check(calls_->default_stream(handle.device, stream), call, handle.device);
      return stream;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    const auto found = objects<Object>().find(handle.number);
    if (found != objects<Object>().end() && found->second.first == handle.device) return found->second.second;
  }
  refuse(call, handle.device, fmt::format("its {} was destroyed, or never made", kObjectName<Object>));
}

template <class Object>
Object* Driver::take(Handle<Object> handle, const char* call) {
  Object* object = find(handle, call);
  const std::lock_guard lock(mutex_);
  if (objects<Object>().erase(handle.number) == 0)
    refuse(call, handle.device, fmt::format("its {} cannot be destroyed", kObjectName<Object>));
  return object;
}

template <class Object>
void Driver::forget(int device) {
  std::erase_if(objects<Object>(), [&](const auto& entry) { return entry.second.first == device; });
}

}  // namespace weft::cuda
