// Compares two devices on random input, for bundles without test vectors.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// One session on each device, with the same random inputs.
class DeviceComparison {
 public:
  // `options`: the sessions' entry point, symbols and custom ops. Symbols without a value get a typical one.
  DeviceComparison(const qnl_bundle* bundle, const qnl_session_options& options);
  ~DeviceComparison();

  // Runs the trusted device. Returns false if that gives no result.
  bool run_trusted(qnl_device* device);
  // Runs the other device. With QNL_OK, *same tells whether the results are equal up to rounding; otherwise
  // `text` says what is wrong.
  qnl_status run(qnl_device* device, bool* same, char* text, uint64_t bytes);

  qnl_session* trusted() const { return trusted_; }
  qnl_session* session() const { return session_; }

 private:
  qnl_status create(qnl_device* device, qnl_session** session, qnl_error* error) const;
  qnl_status fill_inputs(qnl_error* error) const;
  qnl_status copy_inputs(qnl_error* error) const;
  bool same_outputs(char* text, uint64_t bytes) const;

  const qnl_bundle* bundle_;
  qnl_session_options options_;
  uint32_t entry_ = 0;
  qnl_session *trusted_ = nullptr, *session_ = nullptr;
};

}  // namespace quernel::runtime
