// What com.microsoft's attention operators share beside attend.h.
#pragma once

#include "frontends/onnx/attend.h"

namespace quernel::onnx_import {

// Features from..to of [B,S,F].
ValueId features(NodeImport& n, ValueId x, int64_t from, int64_t to);
// Queries, keys and values in their wide dtype, and the scale: the attribute's, else 1 / sqrt of the head
// size.
Status widen_operands(NodeImport& n, AttentionOperands& x);

}  // namespace quernel::onnx_import
