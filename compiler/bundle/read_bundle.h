// read_bundle: a *.qnl file as BundleContents again, to be changed and written anew. What is read and written
// unchanged gives the same bytes.
#pragma once

#include <memory>
#include <string>

#include "bundle/bundle_contents.h"
#include "support/expected.h"

namespace quernel::bundle {

// Constants are views of the mapped file.
class OpenBundle {
 public:
  BundleContents contents;

  OpenBundle() = default;
  ~OpenBundle();
  OpenBundle(const OpenBundle&) = delete;
  OpenBundle& operator=(const OpenBundle&) = delete;

 private:
  friend Expected<std::unique_ptr<OpenBundle>> read_bundle(const std::string& path);
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// The runtime must have opened the file without an error before: nothing is checked here.
Expected<std::unique_ptr<OpenBundle>> read_bundle(const std::string& path);

}  // namespace quernel::bundle
