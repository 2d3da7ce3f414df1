// Ops that move elements without computing: cast, lay_out, concat, index_select, clone, constant, empty.

#include <cstring>

#include "base/error.h"
#include "kernels/registry.h"
#include "kernels/strided.h"

namespace weft {
namespace {

bool is_wide_integer(DType dtype) { return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::u32; }

void copy_element(const TensorView& from, std::int64_t source, const TensorView& to, std::int64_t target) {
  if (is_wide_integer(from.dtype)) {
    const std::int64_t value = load_integer(from.dtype, from.data, source);
    if (is_wide_integer(to.dtype)) {
      store_integer(to.dtype, to.data, target, value);
    } else {
      store_double(to.dtype, to.data, target, static_cast<double>(value));
    }
  } else if (from.dtype == DType::f64 || to.dtype == DType::f64) {
    store_double(to.dtype, to.data, target, load_double(from.dtype, from.data, source));
  } else {
    store_float(to.dtype, to.data, target, load_float(from.dtype, from.data, source));
  }
}

void cast(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    copy_element(x, element_at(x, index, y.rank), y, element_at(y, index, y.rank));
  });
}

void clone(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  if (x.kind == MetaKind::kv) {
    const std::int64_t bytes = x.size[0] * bytes_of(x.dtype, kv_page_elements(x.meta->kv));
    std::memcpy(y.data, x.data, static_cast<std::size_t>(bytes));
  } else if (is_block(x.dtype)) {
    std::memcpy(y.data, x.data, static_cast<std::size_t>(bytes_of(x.dtype, x.elements())));
  } else {
    cast(call);
  }
}

void concat(const KernelCall& call) {
  const TensorView& y = call.results[0];
  const std::int64_t dim = call.attributes.at("dim").integer();
  const int axis = static_cast<int>(dim < 0 ? dim + y.rank : dim);
  std::int64_t begin = 0;
  for (const TensorView& x : call.operands) {
    for_each_index(x.size, x.rank, [&](const std::int64_t* index) {
      copy_element(x, element_at(x, index, x.rank), y, element_at(y, index, y.rank) + begin * y.stride[axis]);
    });
    begin += x.size[axis];
  }
}

std::int64_t checked_row(std::int64_t row, std::int64_t rows) {
  USER_CHECK(row >= 0 && row < rows, "[index_select] index {} is outside [0, {})", row, rows);
  return row;
}

void index_select(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& index = call.operands[1];
  const TensorView& y = call.results[0];
  const std::int64_t dim = call.attributes.at("dim").integer();
  const int axis = static_cast<int>(dim < 0 ? dim + x.rank : dim);
  auto row = [&](std::int64_t i) {
    return checked_row(load_integer(index.dtype, index.data, i * index.stride[0]), x.size[axis]);
  };
  if (is_block(x.dtype)) {
    const std::int64_t bytes = bytes_of(x.dtype, x.elements() / x.size[0]);
    for (std::int64_t i = 0; i < y.size[0]; ++i)
      std::memcpy(y.data + i * bytes, x.data + row(i) * bytes, static_cast<std::size_t>(bytes));
    return;
  }
  for_each_index(y.size, y.rank, [&](const std::int64_t* at) {
    std::int64_t source = 0;
    for (int i = 0; i < x.rank; ++i) source += (i == axis ? row(at[i]) : at[i]) * x.stride[i];
    copy_element(x, source, y, element_at(y, at, y.rank));
  });
}

void constant(const KernelCall& call) {
  const AttributeList& values = call.attributes.at("values").list();
  const TensorView& y = call.results[0];
  for (std::size_t i = 0; i < values.size(); ++i)
    store_double(y.dtype, y.data, static_cast<std::int64_t>(i), values[i].real());
}

}  // namespace
}  // namespace weft

KERNELS(reference, movement) {
  const auto add = [&](const char* op, void (*run)(const KernelCall&)) {
    registry.add({.op = op, .provider = "reference", .supports = none_is_packed, .run = run});
  };
  add("cast", cast);
  add("clone", clone);
  add("lay_out", cast);
  add("concat", concat);
  add("index_select", index_select);
  add("constant", constant);
  add("empty", [](const KernelCall&) {});
}
