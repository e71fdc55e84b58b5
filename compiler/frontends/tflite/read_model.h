// Reading of TensorFlow Lite files. A file is verified before anything of it is read; what the verifier cannot know
// (numbers of tensors, buffers, operators) is checked here, too, so that nobody after this checks a number again.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "frontends/tflite/tflite_generated.h"
#include "graph/tensor.h"
#include "support/expected.h"
#include "support/integer_rounding.h"

namespace quernel::tflite_import {

struct ModelFile {
  std::string name;  // of the file
  Bytes bytes;       // of the whole file; they keep `model` alive
  const tflite::Model* model = nullptr;
  IntegerRounding rounding = IntegerRounding::kSingle;
  size_t entry = 0;  // the subgraph that is imported

  const tflite::SubGraph& subgraph(size_t i) const {
    return *model->subgraphs()->Get(static_cast<uint32_t>(i));
  }
  const tflite::SubGraph& entry_subgraph() const { return subgraph(entry); }
  size_t subgraph_count() const { return model->subgraphs()->size(); }
};

// Returns the model of a file's bytes; one diagnostic says what is wrong with a damaged file.
Expected<ModelFile> read_model(Bytes bytes, std::string file_name);

constexpr uint64_t kFirstOffset = 2;  // in the file, of data behind the FlatBuffer; smaller: there are none

// Checks a number of the file. `what`: "operator 3 of subgraph 0: input".
Status check_number(int64_t number, int64_t least, int64_t count, const std::string& what,
                    const Location& place);

// Elements of a vector of the file, which may be absent.
template <class T>
std::vector<T> elements(const flatbuffers::Vector<T>* vector) {
  if (!vector || vector->size() == 0) return {};
  std::vector<T> result(vector->size());
  std::memcpy(result.data(), vector->Data(), result.size() * sizeof(T));  // a damaged file may not align them
  return result;
}
inline std::string text(const flatbuffers::String* string) { return string ? string->str() : std::string(); }

// Returns the number of a field that the table has and tflite.fbs does not know; such a field may change the meaning of
// the others. nullopt: there is none.
std::optional<int> unknown_field(const flatbuffers::Table& table, size_t known_fields);
template <class T>
std::optional<int> unknown_field(const T& table) {
  return unknown_field(reinterpret_cast<const flatbuffers::Table&>(table),
                       T::MiniReflectTypeTable()->num_elems);
}

// Returns the operator's number, of a node of a verified model.
tflite::BuiltinOperator operator_of(const ModelFile& file, const tflite::Operator& node);
// Returns the operator's name: "CONV_2D", or what the file calls a custom operator.
std::string operator_name(const ModelFile& file, const tflite::Operator& node);
// Returns the name of a tensor's element type: "float32".
std::string type_name(tflite::TensorType type);

}  // namespace quernel::tflite_import
