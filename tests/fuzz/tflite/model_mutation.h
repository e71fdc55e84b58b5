// Mutations of TensorFlow Lite models.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace quernel::tflite_test {

using ModelBytes = std::vector<uint8_t>;

// Returns a mutant of one of the models; it depends on `index` alone. Three of four are models of which one to four
// fields, lists or numbers were changed, so that the file can be read; in the others bytes were. Requires models.
ModelBytes mutant_of(const std::vector<ModelBytes>& models, uint64_t index);

}  // namespace quernel::tflite_test
