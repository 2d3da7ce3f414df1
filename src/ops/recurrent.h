#pragma once

// What the ops of recurrent layers have in common.

#include "base/error.h"
#include "ir/op.h"

namespace weft {

// UserError unless they are a batch, and the slots of its rows.
inline void require_batch_and_slots(const Meta& batch, const Meta& slots, const Dim& rows, const char* op) {
  USER_CHECK(batch.kind == MetaKind::batch, "[{}] batch must be a batch, but is {}", op, batch.text());
  USER_CHECK(slots.is_tensor() && slots.dtype == DType::i64 && slots.shape == Shape{rows},
             "[{}] slots must be i64[{}], but is {}", op, rows.text(), slots.text());
}

}  // namespace weft
