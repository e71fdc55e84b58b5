// What an ONNX file says of itself.
#pragma once

#include <onnx/onnx_pb.h>

#include "support/model_about.h"

namespace quernel::onnx_import {

ModelAbout read_about(const onnx::ModelProto& model);

}  // namespace quernel::onnx_import
