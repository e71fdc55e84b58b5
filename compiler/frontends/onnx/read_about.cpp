#include "frontends/onnx/read_about.h"

namespace quernel::onnx_import {

ModelAbout read_about(const onnx::ModelProto& model) {
  ModelAbout about;
  about.add("description", model.doc_string());
  if (model.model_version() != 0) about.add("version", std::to_string(model.model_version()));
  about.add("domain", model.domain());
  about.add("producer",
            model.producer_name() + (model.producer_version().empty() ? "" : " " + model.producer_version()));
  for (const onnx::StringStringEntryProto& entry : model.metadata_props())
    about.add(entry.key(), entry.value());
  return about;
}

}  // namespace quernel::onnx_import
