// Test vectors that a bundle holds, on the way into a session and compared with what it has computed.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// Appends the symbols that are dims of an input, with their values in a shape, to the `count` that `values`
// has; without those that it has already or that are out of their symbol's range. Returns how many it has
// now: at most as many as the bundle has symbols.
uint32_t shape_symbols(const qnl_bundle* bundle, uint32_t entry, uint32_t input, const int64_t* shape,
                       uint32_t rank, qnl_symbol_value* values, uint32_t count);
// The same of all inputs of a test vector.
uint32_t test_symbols(const qnl_bundle* bundle, uint32_t test, qnl_symbol_value* values);

// Gives the session, which is of the test's entry point, the inputs.
qnl_status set_test_inputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, qnl_error* error);
// True when the session's outputs are what the test vector expects; else what is wrong is in the text.
bool compare_test_outputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, char* text,
                          uint64_t bytes);

}  // namespace quernel::runtime
