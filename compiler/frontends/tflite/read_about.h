// What a TensorFlow Lite file says of itself: its buffer TFLITE_METADATA, and the labels in the ZIP archive behind it.
#pragma once

#include <string>
#include <vector>

#include "frontends/tflite/read_model.h"
#include "support/model_about.h"

namespace quernel::tflite_import {

// Damaged metadata, and labels that cannot be read, are left out; `notes` says so. `inputs`: the names of the imported
// subgraph's.
ModelAbout read_about(const ModelFile& file, const std::vector<std::string>& inputs,
                      std::vector<std::string>& notes);

}  // namespace quernel::tflite_import
