// LSTMs of integers, as TensorFlow Lite's kernels compute them: values of 8 bits, gates and cell states of 16.
#pragma once

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// Imports UNIDIRECTIONAL_SEQUENCE_LSTM of i8 operands.
Status quantized_sequence_lstm(NodeImport& n, double cell_clip, double projection_clip, bool time_major);
// Imports LSTM of the basic kernel with u8 operands.
Status quantized_basic_lstm(NodeImport& n);

}  // namespace quernel::tflite_import
