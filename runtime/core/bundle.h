// The bundle object behind the C interface: a reader over a mapped file or the caller's memory.
#pragma once

#include "core/bundle_reader.h"
#include "platform/platform.h"

struct qnl_bundle {
  quernel::runtime::BundleReader reader;
  quernel::platform::MappedFile file;  // unmapped when the bundle is closed, if not empty
  bool owns_memory = false;            // whether the runtime allocated this object
};
