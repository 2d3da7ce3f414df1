#pragma once

// A macro as a value. Also the body of a call block, as the value `caller`.

#include <memory>
#include <string>

#include "io/jinja/renderer.h"

namespace weft::jinja {

class Macro : public Object {
 public:
  Macro(Renderer& renderer, const MacroSyntax& syntax, std::shared_ptr<Scope> closure)
      : renderer_(renderer), syntax_(syntax), closure_(std::move(closure)) {}

  std::string type_name() const override { return "Macro"; }
  void print(Printer& printer) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;

 private:
  Renderer& renderer_;
  const MacroSyntax& syntax_;
  std::shared_ptr<Scope> closure_;
};

}  // namespace weft::jinja
