#include "frontends/tflite/read_about.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "frontends/tflite/metadata_generated.h"
#include "frontends/tflite/signatures.h"
#include "frontends/tflite/zip_entries.h"

namespace quernel::tflite_import {
namespace {

namespace meta = quernel::tflite_metadata;

constexpr uint32_t kMaxDepth = 16, kMaxTables = 1 << 16;
constexpr size_t kMostBytes = 1 << 24, kMostFiles = 64;

// The data of a buffer; nothing where it is empty, or lies outside of the file. The copy is aligned.
std::vector<uint8_t> data_of(const ModelFile& file, uint32_t number) {
  const auto* buffers = file.model->buffers();
  if (!buffers || number >= buffers->size()) return {};
  const tflite::Buffer& buffer = *buffers->Get(number);
  if (buffer.data() && buffer.data()->size() > kMostBytes) return {};
  if (buffer.offset() < kFirstOffset) return elements(buffer.data());
  uint64_t all = file.bytes.size();
  if (buffer.offset() > all || buffer.size() > std::min<uint64_t>(all - buffer.offset(), kMostBytes))
    return {};
  const uint8_t* begin = file.bytes.data() + buffer.offset();
  return {begin, begin + buffer.size()};
}

// "127.5", "0.485,0.456,0.406"
std::string numbers(const flatbuffers::Vector<float>* values) {
  constexpr size_t kMost = 16;
  std::string list;
  for (float value : elements(values)) {
    std::array<char, 32> number;
    std::snprintf(number.data(), number.size(), "%.9g", static_cast<double>(value));
    list += (list.empty() ? "" : ",") + std::string(number.data());
    if (list.size() > kMost * number.size()) return list + ",…";
  }
  return list;
}

class AboutReader {
 public:
  AboutReader(const ModelFile& file, const std::vector<std::string>& inputs, std::vector<std::string>& notes)
      : file_(file), inputs_(inputs), notes_(notes) {}

  ModelAbout run() {
    about_.signatures = signature_keys(file_);
    const auto* list = file_.model->metadata();
    for (uint32_t i = 0; list && i < list->size(); ++i) {
      std::string name = text(list->Get(i)->name());
      if (name == "TFLITE_METADATA") add_metadata(data_of(file_, list->Get(i)->buffer()));
      if (name != "min_runtime_version") continue;
      std::vector<uint8_t> version = data_of(file_, list->Get(i)->buffer());
      about_.add(name, std::string(version.begin(), version.end()));
    }
    about_.add("producer", text(file_.model->description()));
    if (about_.left_out > 0) notes_.push_back(note_of_left_out(about_));
    return std::move(about_);
  }

 private:
  void add_metadata(const std::vector<uint8_t>& bytes) {
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMaxDepth, kMaxTables);
    if (!meta::VerifyModelMetadataBuffer(verifier)) {
      notes_.push_back("the model's metadata are damaged, and not read");
      return;
    }
    const meta::ModelMetadata& model = *meta::GetModelMetadata(bytes.data());
    about_.add("name", text(model.name()));
    about_.add("description", text(model.description()));
    about_.add("version", text(model.version()));
    about_.add("author", text(model.author()));
    about_.add("license", text(model.license()));
    add_files(model.associated_files());
    for (uint32_t i = 0; model.subgraphs() && i < model.subgraphs()->size(); ++i)
      add_subgraph(*model.subgraphs()->Get(i), i);
    add_labels();
  }

  void add_subgraph(const meta::SubGraphMetadata& subgraph, size_t number) {
    add_files(subgraph.associated_files());
    for (const auto* tensors : {subgraph.inputs(), subgraph.outputs()})
      for (uint32_t i = 0; tensors && i < tensors->size(); ++i) {
        const meta::TensorMetadata& tensor = *tensors->Get(i);
        add_files(tensor.associated_files());
        if (tensors == subgraph.inputs() && number == file_.entry && i < inputs_.size())
          add_normalization(tensor, inputs_[i]);
      }
  }

  void add_normalization(const meta::TensorMetadata& tensor, const std::string& input) {
    for (uint32_t i = 0; tensor.process_units() && i < tensor.process_units()->size(); ++i)
      if (const auto* unit = tensor.process_units()->Get(i)->options_as_NormalizationOptions())
        about_.add("normalization of " + input,
                   "(x - mean) / std, mean " + numbers(unit->mean()) + ", std " + numbers(unit->std()));
  }

  // Whether the file is a new one.
  bool add_file(const std::string& name) {
    if (files_.size() >= kMostFiles || std::find(files_.begin(), files_.end(), name) != files_.end())
      return false;
    files_.push_back(name);
    return true;
  }

  void add_files(const flatbuffers::Vector<flatbuffers::Offset<meta::AssociatedFile>>* files) {
    for (uint32_t i = 0; files && i < files->size(); ++i) {
      const meta::AssociatedFile& file = *files->Get(i);
      bool has_labels = file.type() == meta::FileKind::TENSOR_AXIS_LABELS ||
                        file.type() == meta::FileKind::TENSOR_VALUE_LABELS;
      if (add_file(text(file.name())) && has_labels) labels_.push_back(files_.back());
    }
  }

  void add_labels() {
    std::vector<ZipEntry> entries = zip_entries({file_.bytes.data(), file_.bytes.size()});
    for (const ZipEntry& entry : entries) add_file(entry.name);
    std::string names;
    for (const std::string& name : files_) names += (names.empty() ? "" : ", ") + name;
    about_.add("files", names);
    for (const std::string& name : labels_) {
      auto entry =
          std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& e) { return e.name == name; });
      if (entry == entries.end())
        notes_.push_back("labels '" + name + "' are not read: the archive behind the model has no such file");
      else if (!entry->data)
        notes_.push_back("labels '" + name + "' are not read: they are compressed or damaged");
      else
        about_.add_labels(name, std::string(entry->data->begin(), entry->data->end()));
    }
  }

  const ModelFile& file_;
  const std::vector<std::string>& inputs_;
  std::vector<std::string>& notes_;
  ModelAbout about_;
  std::vector<std::string> files_, labels_;  // names of all files, of those with labels
};

}  // namespace

ModelAbout read_about(const ModelFile& file, const std::vector<std::string>& inputs,
                      std::vector<std::string>& notes) {
  return AboutReader(file, inputs, notes).run();
}

}  // namespace quernel::tflite_import
