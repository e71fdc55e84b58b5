// What a model says of itself: read where it is whole, left out with a note where it is not.
#include <gtest/gtest.h>

#include "frontends/tflite/metadata_generated.h"
#include "frontends/tflite/zip_entries.h"
#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

namespace meta = quernel::tflite_metadata;
using Bytes = std::vector<uint8_t>;

void append(Bytes& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) to.push_back(static_cast<uint8_t>(value));
}

// An archive of files that are not compressed, whose offsets count from `base` bytes before it.
Bytes zip(const std::vector<std::pair<std::string, std::string>>& files, size_t base, int method = 0) {
  Bytes archive, directory;
  for (const auto& [name, data] : files) {
    size_t local = base + archive.size();
    auto header = [&](Bytes& to) {
      append(to, static_cast<uint64_t>(method), 2), append(to, 0, 8);
      append(to, data.size(), 4), append(to, data.size(), 4), append(to, name.size(), 2), append(to, 0, 2);
    };
    append(archive, 0x04034B50, 4), append(archive, 20, 4);
    header(archive);
    archive.insert(archive.end(), name.begin(), name.end());
    archive.insert(archive.end(), data.begin(), data.end());
    append(directory, 0x02014B50, 4), append(directory, 20, 2), append(directory, 20, 4);
    header(directory);
    append(directory, 0, 10), append(directory, local, 4);
    directory.insert(directory.end(), name.begin(), name.end());
  }
  size_t begin = base + archive.size();
  archive.insert(archive.end(), directory.begin(), directory.end());
  append(archive, 0x06054B50, 4), append(archive, 0, 4), append(archive, files.size(), 2);
  append(archive, files.size(), 2), append(archive, directory.size(), 4), append(archive, begin, 4);
  append(archive, 0, 2);
  return archive;
}

Bytes metadata(const std::string& description = "Tells a from b.") {
  flatbuffers::FlatBufferBuilder b;
  auto file = [&](const char* name, meta::FileKind kind) {
    return meta::CreateAssociatedFile(b, b.CreateString(name), 0, kind);
  };
  std::vector<flatbuffers::Offset<meta::AssociatedFile>> labels{
      file("labels.txt", meta::FileKind::TENSOR_AXIS_LABELS), file("words.txt", meta::FileKind::VOCABULARY)};
  std::vector<float> mean{127.5f}, deviation{0.5f, 0.25f};
  auto options = meta::CreateNormalizationOptions(b, b.CreateVector(mean), b.CreateVector(deviation));
  std::vector<flatbuffers::Offset<meta::ProcessUnit>> units{
      meta::CreateProcessUnit(b, meta::ProcessUnitOptions::NormalizationOptions, options.Union())};
  std::vector<flatbuffers::Offset<meta::TensorMetadata>> in{
      meta::CreateTensorMetadata(b, b.CreateString("image"), 0, 0, 0, b.CreateVector(units))};
  std::vector<flatbuffers::Offset<meta::TensorMetadata>> out{
      meta::CreateTensorMetadata(b, b.CreateString("scores"), 0, 0, 0, 0, 0, b.CreateVector(labels))};
  std::vector<flatbuffers::Offset<meta::SubGraphMetadata>> subgraphs{
      meta::CreateSubGraphMetadata(b, 0, 0, b.CreateVector(in), b.CreateVector(out))};
  auto name = b.CreateString("letters"), text = b.CreateString(description), version = b.CreateString("v2"),
       author = b.CreateString("A. Author"), license = b.CreateString("MIT");
  b.Finish(meta::CreateModelMetadata(b, name, text, version, b.CreateVector(subgraphs), author, license),
           "M001");
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

ModelBuilder model() {
  ModelBuilder m;
  m.node(Op::ABS, {m.input("x", {2})}, {m.output("y", {2})});
  return m;
}

ImportedModel imported(const ModelBuilder& m) {
  Expected<ImportedModel> imported = m.import();
  if (imported) return std::move(*imported);
  ADD_FAILURE() << to_string(imported.errors());
  return {};
}

std::string value_of(const ModelAbout& about, const std::string& name) {
  for (const auto& [own, value] : about.properties)
    if (own == name) return value;
  return "none";
}

TEST(TfliteAbout, metadata_and_labels_are_read) {
  ModelBuilder m = model();
  m.metadata = {{"TFLITE_METADATA", metadata()}, {"min_runtime_version", {'1', '.', '5', 0, 0}}};
  m.behind = zip({{"words.txt", "w"}, {"labels.txt", "a\nb\nc"}}, m.bytes().size());
  ImportedModel model = imported(m);
  EXPECT_TRUE(model.notes.empty());
  EXPECT_EQ(value_of(model.about, "name"), "letters");
  EXPECT_EQ(value_of(model.about, "description"), "Tells a from b.");
  EXPECT_EQ(value_of(model.about, "version"), "v2");
  EXPECT_EQ(value_of(model.about, "author"), "A. Author");
  EXPECT_EQ(value_of(model.about, "license"), "MIT");
  EXPECT_EQ(value_of(model.about, "files"), "labels.txt, words.txt");
  EXPECT_EQ(value_of(model.about, "min_runtime_version"), "1.5");
  EXPECT_EQ(value_of(model.about, "normalization of x"), "(x - mean) / std, mean 127.5, std 0.5,0.25");
  ASSERT_EQ(model.about.labels.size(), 1u);
  EXPECT_EQ(model.about.labels[0].file, "labels.txt");
  EXPECT_EQ(model.about.labels[0].text, "a\nb\nc");
  EXPECT_EQ(model.about.labels[0].count(), 3);
}

TEST(TfliteAbout, offsets_may_count_from_the_archive) {
  ModelBuilder m = model();
  m.metadata = {{"TFLITE_METADATA", metadata()}};
  m.behind = zip({{"labels.txt", "a\n"}}, 0);
  ASSERT_EQ(imported(m).about.labels.size(), 1u);
}

TEST(TfliteAbout, labels_that_cannot_be_read_are_left_out) {
  ModelBuilder m = model();
  m.metadata = {{"TFLITE_METADATA", metadata()}};
  EXPECT_EQ(imported(m).notes,
            std::vector<std::string>{
                "labels 'labels.txt' are not read: the archive behind the model has no such file"});
  m.behind = zip({{"labels.txt", "a\n"}}, m.bytes().size(), 8);
  EXPECT_EQ(imported(m).notes,
            std::vector<std::string>{"labels 'labels.txt' are not read: they are compressed or damaged"});
  m.behind = {};
  m.behind = zip({{"labels.txt", std::string(100000, 'a')}}, m.bytes().size());
  EXPECT_EQ(imported(m).notes,
            std::vector<std::string>{"of what the model says of itself, 1 text is left out: it is "
                                     "long, or one of many"});
}

TEST(TfliteAbout, long_texts_are_left_out) {
  ModelBuilder m = model();
  m.metadata = {{"TFLITE_METADATA", metadata(std::string(5000, 'a'))},
                {"min_runtime_version", Bytes(5000, 'a')}};
  m.behind = zip({{"labels.txt", "a\n"}}, m.bytes().size());
  EXPECT_EQ(imported(m).notes,
            std::vector<std::string>{"of what the model says of itself, 2 texts are left out: they "
                                     "are long, or some of many"});
}

TEST(TfliteAbout, damaged_metadata_are_not_read) {
  const Bytes whole = metadata();
  ModelBuilder m = model();
  for (size_t size = 0; size < whole.size(); size += 3) {
    m.metadata = {{"TFLITE_METADATA", {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}}};
    ImportedModel model = imported(m);
    ASSERT_FALSE(model.notes.empty());
    if (size < 8) {
      EXPECT_EQ(model.notes[0], "the model's metadata are damaged, and not read");
    }
  }
  for (size_t at = 0; at < whole.size(); ++at)
    for (uint8_t flip : {0x01, 0x80, 0xFF}) {
      Bytes damaged = whole;
      damaged[at] ^= flip;
      m.metadata = {{"TFLITE_METADATA", damaged}};
      imported(m);
    }
}

TEST(TfliteAbout, damaged_archives_are_not_read) {
  const Bytes whole = zip({{"labels.txt", "a\nb\n"}, {"b", ""}}, 0);
  EXPECT_EQ(tflite_import::zip_entries(whole).size(), 2u);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(tflite_import::zip_entries({whole.data(), size}).empty());
  for (size_t at = 0; at < whole.size(); ++at)
    for (uint8_t flip : {0x01, 0x80, 0xFF}) {
      Bytes damaged = whole;
      damaged[at] ^= flip;
      for (const tflite_import::ZipEntry& entry : tflite_import::zip_entries(damaged))
        EXPECT_LE(entry.data ? entry.data->size() : 0, damaged.size());
    }
}

TEST(TfliteAbout, signatures_have_names) {
  ModelBuilder m = model();
  m.signatures = {{"serving_default", 0}};
  EXPECT_EQ(imported(m).about.signatures, std::vector<std::string>{"serving_default"});
}

}  // namespace
}  // namespace quernel::tflite_test
