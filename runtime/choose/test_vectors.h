// Sets the inputs of a bundle's test vectors in a session, and compares the outputs.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// Finds the symbols that are dims of an input, and their values in a shape. Appends them to the `count`
// entries of `values`. Symbols already there, or out of their range, are skipped. Returns the new number of
// entries: at most the number of symbols in the bundle.
uint32_t shape_symbols(const qnl_bundle* bundle, uint32_t entry, uint32_t input, const int64_t* shape,
                       uint32_t rank, qnl_symbol_value* values, uint32_t count);
// The same for all inputs of a test vector, from an empty list.
uint32_t test_symbols(const qnl_bundle* bundle, uint32_t test, qnl_symbol_value* values);

// Sets the inputs. Requires a session of the test's entry point.
qnl_status set_test_inputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, qnl_error* error);
// Returns true if the session's outputs are as the test vector expects. Otherwise `text` says what is wrong.
bool compare_test_outputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, char* text,
                          uint64_t bytes);

}  // namespace quernel::runtime
