// Fourier transforms as products with constant matrices, in f64.
#pragma once

#include "frontends/shared/imported_node.h"

namespace quernel {

struct FourierTransform {
  int64_t length = 1;
  bool inverse = false;
  // The result is real and the input the first half of its spectrum.
  bool to_real = false;
  double sign() const { return inverse ? 1 : -1; }
};

// Returns x [outer, elements, inner, parts] with its second dim transformed: f64 [outer, results, inner, result parts].
// There are two parts, or one of real values. Requires check_transform_length.
Expected<ValueId> fourier_transform(ImportedNode& n, ValueId x, const FourierTransform& f, int64_t results);

// Returns x with dim 1 of [outer, L, inner, parts] cut or padded with zeros to `length`.
ValueId fit_transform_length(ImportedNode& n, ValueId x, int64_t length);
// Refuses lengths beyond 1 to 2^22.
Status check_transform_length(ImportedNode& n, int64_t length);

}  // namespace quernel
