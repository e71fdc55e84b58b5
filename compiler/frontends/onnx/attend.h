// Scaled dot product attention as two contractions around a softmax; what the attention operators of every
// domain share.
#pragma once

#include <functional>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// Queries [B,H,S,D], keys [B,G,T,D] and values [B,G,T,E], all in one wide dtype; H is a multiple of G, and
// each key head serves H/G query heads in a row.
struct AttentionOperands {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;
  ValueId allowed = kNoValue;  // bool, broadcasts to [B,H,S,T]: which keys a query may see
  ValueId bias = kNoValue;     // added to the scores, broadcasts likewise; -inf hides a key, too
  ValueId sink = kNoValue;     // [H], an extra score per head that takes weight and has no value
  double scale = 1;
  double softcap = 0;                     // 0: none
  std::optional<DType> softmax_rounding;  // the dtype that scores and weights are rounded to
  // Change scores and weights, both in that dtype; kNoValue where that failed and has been reported.
  std::function<ValueId(ValueId)> score_mod, weight_mod;
};
struct AttentionValues {
  ValueId output = kNoValue;  // [B,H,S,E]
  ValueId raw = kNoValue, capped = kNoValue, biased = kNoValue,
          weights = kNoValue;  // [B,H,S,T], step by step
};
// Queries that may see no key give zeros. All are kNoValue where a modifier failed.
Expected<AttentionValues> attend(NodeImport& n, const AttentionOperands& x);

// [B,S,heads*D] as [B,heads,S,D], and back.
Expected<ValueId> split_heads(NodeImport& n, ValueId x, int64_t heads);
ValueId merge_heads(NodeImport& n, ValueId x);

// bool [S,T] or [B,1,S,T]: whether key j lies between i + offset - left and i + offset + right; a negative
// bound is none. `offset` is a value of [] or [B,1,1,1], int64.
ValueId window_mask(NodeImport& n, const Dim& queries, const Dim& keys, ValueId offset, int64_t left,
                    int64_t right);
// bool [B,1,1,T]: whether key j < lengths[b].
ValueId length_mask(NodeImport& n, ValueId lengths, const Dim& keys);
// Both where both are given.
ValueId both_allowed(NodeImport& n, ValueId a, ValueId b);

// Rotates the first `rotated` features of x [B,S,H,D]; cosines and sines are [B or 1,S,rotated/2].
ValueId rotate(NodeImport& n, ValueId x, ValueId cosines, ValueId sines, int64_t rotated, bool interleaved);

}  // namespace quernel::onnx_import
