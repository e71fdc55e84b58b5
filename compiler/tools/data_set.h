// Test directories: a model, and beside it data sets as ONNX has them, test_data_set_N/{input,output}_K.pb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/expected.h"
#include "tensor_file.h"

namespace quernel::tools {

// A damaged file matters only where it is needed.
struct DataFile {
  std::string name;  // "test_data_set_0/input_0.pb"
  std::string path;
  tensor_file::HostTensor tensor;
  tensor_file::Error error;
};

struct DataSet {
  std::string name;
  std::vector<DataFile> inputs, outputs;
  std::string signature = {};  // of the model, that it calls; empty: the first
};

// Directories that hold a model: those given, or their children, sorted.
Expected<std::vector<std::string>> find_cases(const std::vector<std::string>& dirs);

// Returns the path of a directory's model, model.onnx or else model.tflite; nullopt: it holds none.
std::optional<std::string> model_in(const std::string& dir);

// Returns all sets of a directory, in the order of their numbers.
std::vector<DataSet> read_data_sets(const std::string& dir);

// Which file holds each of the named tensors: the one of that name, else the first of the rest in order; -1:
// none.
std::vector<int> match_files(const std::vector<std::string>& names, const std::vector<DataFile>& files);

}  // namespace quernel::tools
