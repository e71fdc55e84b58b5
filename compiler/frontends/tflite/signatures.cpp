#include "frontends/tflite/signatures.h"

namespace quernel::tflite_import {

Status check_signatures(const tflite::Model& model, const Location& place) {
  if (!model.signature_defs()) return {};
  for (uint32_t i = 0; i < model.signature_defs()->size(); ++i) {
    const tflite::SignatureDef& signature = *model.signature_defs()->Get(i);
    std::string what = "signature " + std::to_string(i);
    QUERNEL_CHECK(
        check_number(signature.subgraph_index(), 0, model.subgraphs()->size(), what + ": subgraph", place));
    const auto* tensors = model.subgraphs()->Get(signature.subgraph_index())->tensors();
    for (const auto* list : {signature.inputs(), signature.outputs()})
      for (uint32_t k = 0; list && k < list->size(); ++k)
        QUERNEL_CHECK(check_number(list->Get(k)->tensor_index(), 0, tensors ? tensors->size() : 0,
                                   what + ": input or output", place));
  }
  return {};
}

std::vector<std::string> signature_keys(const ModelFile& file) {
  std::vector<std::string> keys;
  const auto* signatures = file.model->signature_defs();
  for (uint32_t i = 0; signatures && i < signatures->size(); ++i)
    keys.push_back(text(signatures->Get(i)->signature_key()));
  return keys;
}

std::optional<std::string> note_of_signatures(const ModelFile& file) {
  std::string names;
  std::vector<std::string> keys = signature_keys(file);
  for (const std::string& key : keys) names += (names.empty() ? "'" : ", '") + key + "'";
  if (keys.size() < 2) return std::nullopt;
  return "the model has the signatures " + names +
         ": this is the first subgraph; --entry NAME chooses another";
}

Expected<size_t> entry_subgraph(const ModelFile& file, const std::string& signature) {
  std::vector<std::string> keys = signature_keys(file);
  std::string known;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if (!signature.empty() && keys[i] == signature)
      return size_t{file.model->signature_defs()->Get(i)->subgraph_index()};
    known += (known.empty() ? "'" : ", '") + keys[i] + "'";
  }
  if (signature.empty() || keys.size() < 2) return size_t{0};
  return invalid_input(
      "expected an entry point of the name of a signature (" + known + "), found '" + signature + "'",
      Location{.file = file.name});
}

}  // namespace quernel::tflite_import
