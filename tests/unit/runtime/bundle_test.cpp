// Bundles: what is written is what is read, and everything that can be wrong with a file has its own
// diagnostic.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "bundle/bundle_structure.h"
#include "bundle/read_bundle.h"
#include "bundle/write_bundle.h"
#include "core/bundle.h"
#include "core/failure.h"
#include "core/feature_names.h"
#include "cpu/cpu_features.h"
#include "quernel/runtime.hpp"
#include "schemas/bundle_tables.h"
#include "test_bundle.h"

namespace quernel::test {
namespace {

struct Opened {
  qnl_status status = QNL_OK;
  std::string text;
};

Opened open(const std::vector<std::byte>& bytes, bool verify_weights = false) {
  AlignedBytes aligned(bytes);
  Bundle bundle;
  qnl_bundle_options options = {};
  options.verify_weights = verify_weights;
  qnl_error error = {};
  qnl_status status = bundle.open(aligned.data(), aligned.size(), &options, &error);
  EXPECT_EQ(error.status, status);
  return {status, error.text};
}

const std::vector<std::byte>& valid_bytes() {
  static const std::vector<std::byte> bytes = bundle_bytes(test_contents());
  return bytes;
}

const schema::Bundle* structure_of(const std::vector<std::byte>& bytes) {
  return schema::GetBundle(bytes.data() + 64);
}

template <class T>
void put(std::vector<std::byte>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// A bundle whose contents the writer accepted, opened after `change` and rehashing.
template <class Change>
Opened open_changed(Change change) {
  std::vector<std::byte> bytes = valid_bytes();
  change(const_cast<schema::Bundle*>(structure_of(bytes)));
  rehash(bytes);
  return open(bytes);
}

// Overwrites a scalar inside the structure, whose location a schema accessor gives by address.
template <class T>
void poke(const void* at, T value) {
  std::memcpy(const_cast<void*>(at), &value, sizeof value);
}

TEST(Bundle, round_trip_keeps_everything) {
  std::string path = temporary_path("round_trip.qnl");
  bundle::BundleContents contents = test_contents();
  auto written = bundle::write_bundle(contents, path);
  ASSERT_TRUE(written);
  Bundle bundle;
  qnl_error error = {};
  qnl_bundle_options options = {};
  options.verify_weights = 1;
  ASSERT_EQ(bundle.open(path.c_str(), &options, &error), QNL_OK) << error.text;
  qnl_bundle_info info = bundle.info();
  EXPECT_STREQ(info.producer, "runtime tests");
  EXPECT_EQ(info.entry_point_count, 5u);
  EXPECT_EQ(info.variant_count, 3u);
  EXPECT_EQ(info.constants_bytes, 10000u);
  EXPECT_EQ(info.file_bytes, written->file);
  EXPECT_EQ(info.code_bytes, test_image().size()) << "equal images are stored once";
  qnl_entry_info entry;
  ASSERT_EQ(qnl_bundle_get_entry(bundle.get(), 0, &entry), QNL_OK);
  EXPECT_STREQ(entry.name, "main");
  EXPECT_EQ(entry.input_count, 2u);
  qnl_tensor tensor;
  ASSERT_EQ(qnl_bundle_get_tensor(bundle.get(), 0, QNL_INPUT, 1, &tensor), QNL_OK);
  EXPECT_STREQ(tensor.name, "b");
  EXPECT_EQ(tensor.dtype, QNL_F32);
  EXPECT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.shape[1], 64);
  ASSERT_EQ(qnl_bundle_get_tensor(bundle.get(), 1, QNL_STATE, 0, &tensor), QNL_OK);
  EXPECT_STREQ(tensor.name, "acc");
  EXPECT_EQ(qnl_bundle_get_tensor(bundle.get(), 1, QNL_STATE, 1, &tensor), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(qnl_bundle_get_entry(bundle.get(), 5, &entry), QNL_INVALID_ARGUMENT);
  qnl_variant_info variant;
  ASSERT_EQ(qnl_bundle_get_variant(bundle.get(), 1, &variant), QNL_OK);
  EXPECT_STREQ(variant.target, "future");
  EXPECT_EQ(variant.kernel_count, kKernelCount);
}

TEST(Bundle, same_contents_give_same_bytes) { EXPECT_EQ(bundle_bytes(test_contents()), valid_bytes()); }

// The structure, which is written last, reaches beyond the first pieces, and constants leave gaps of pieces.
TEST(Bundle, large_files_are_put_together_from_pieces) {
  constexpr uint64_t kPiece = uint64_t{2} << 20;
  bundle::BundleContents contents = test_contents();
  std::string text(kPiece * 2 + 12345, 'x');
  text.replace(text.size() - 3, 3, "end");
  contents.entry_points[0].plans[0].text = text;
  std::vector<std::byte> values(kPiece * 2 + 777);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 31 + i / 251);
  bundle::ConstantsSegment& constants = contents.constants[0];
  const uint64_t offset = constants.bytes + kPiece * 3 + 64;
  constants.pieces.push_back({offset, values.size(), values, {}});
  constants.bytes = offset + values.size();
  contents.arenas[0].bytes = constants.bytes;

  std::vector<std::byte> bytes = bundle_bytes(contents);
  ASSERT_EQ(open(bytes, true).text, "");
  const schema::Bundle* structure = structure_of(bytes);
  EXPECT_EQ(structure->entry_points()->Get(0)->plans()->Get(0)->text()->str(), text);
  const schema::Segment* segment = structure->segments()->Get(structure->segments()->size() - 1);
  for (uint32_t i = 0; i < structure->segments()->size(); ++i)
    if (structure->segments()->Get(i)->bytes() == constants.bytes) segment = structure->segments()->Get(i);
  ASSERT_EQ(segment->bytes(), constants.bytes);
  const std::byte* stored = bytes.data() + segment->offset();
  EXPECT_TRUE(std::equal(values.begin(), values.end(), stored + offset));
  EXPECT_TRUE(std::all_of(stored + offset - kPiece * 3, stored + offset,
                          [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Bundle, segments_are_page_aligned) {
  const schema::Bundle* structure = structure_of(valid_bytes());
  ASSERT_EQ(structure->segments()->size(), 3u);
  for (uint32_t i = 0; i < structure->segments()->size(); ++i)
    EXPECT_EQ(structure->segments()->Get(i)->offset() % 4096, 0u);
}

TEST(Bundle, truncated_at_every_boundary) {
  const std::vector<std::byte>& valid = valid_bytes();
  std::vector<size_t> lengths = {4, 8, 12, 16, 24, 32, 40, 48, 56, 63, 64, 65, valid.size() - 1};
  const schema::Bundle* structure = structure_of(valid);
  for (uint32_t i = 0; i < structure->segments()->size(); ++i) {
    const schema::Segment* s = structure->segments()->Get(i);
    for (uint64_t at : {s->offset() - 1, s->offset(), s->offset() + 1, s->offset() + s->bytes() - 1})
      lengths.push_back(at);
  }
  for (size_t length : lengths)
    EXPECT_EQ(open({valid.begin(), valid.begin() + static_cast<long>(length)}).status, QNL_TRUNCATED)
        << length;
  EXPECT_EQ(open({valid.begin(), valid.begin() + 63}).text, "bundle: expected at least 64 bytes, found 63");
  EXPECT_EQ(open({valid.begin(), valid.begin() + 65}).text,
            "bundle: expected " + std::to_string(valid.size()) + " bytes, found 65");
  for (size_t length : {0, 1, 3}) {
    Opened opened = open({valid.begin(), valid.begin() + length});
    EXPECT_EQ(opened.status, QNL_NOT_A_BUNDLE) << length;
    EXPECT_EQ(opened.text, std::string("file: expected a bundle, which begins with 'QNL1'; found ") +
                               (length == 0 ? "an empty file" : "something else"));
  }
}

TEST(Bundle, appended_bytes_are_refused) {
  std::vector<std::byte> bytes = valid_bytes();
  bytes.resize(bytes.size() + 1);
  EXPECT_EQ(open(bytes).status, QNL_INVALID_BUNDLE);
}

TEST(Bundle, every_bit_flip_is_detected) {
  std::vector<std::byte> bytes = valid_bytes();
  AlignedBytes aligned(bytes);
  auto* data = static_cast<std::byte*>(const_cast<void*>(aligned.data()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    // every bit of the header and some bits of the rest: a test of all of them would take minutes
    for (int bit = static_cast<int>(i % 8); bit < 8; bit += i < 64 ? 1 : 8) {
      data[i] ^= static_cast<std::byte>(1 << bit);
      Bundle bundle;
      qnl_bundle_options options = {};
      options.verify_weights = 1;
      qnl_status status = bundle.open(aligned.data(), aligned.size(), &options, nullptr);
      ASSERT_NE(status, QNL_OK) << "byte " << i << " bit " << bit;
      data[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
}

TEST(Bundle, bit_flips_are_named_by_their_place) {
  const schema::Bundle* structure = structure_of(valid_bytes());
  std::string said;
  auto flipped = [&said](size_t at, bool verify_weights) {
    std::vector<std::byte> bytes = valid_bytes();
    bytes[at] ^= std::byte{4};
    Opened opened = open(bytes, verify_weights);
    said = opened.text;
    return opened.status;
  };
  auto expect_said = [&said](const char* what, const char* next) {
    EXPECT_EQ(said.rfind(what, 0), 0u) << said;
    EXPECT_NE(said.find(next), std::string::npos) << said;
  };
  const char* const again = "the file is damaged, copy or compile it again";
  const char* const zeros = "expected zeros between it and the one before; the file is damaged";
  EXPECT_EQ(flipped(2, false), QNL_NOT_A_BUNDLE);
  EXPECT_EQ(flipped(9, false), QNL_CORRUPT_HEADER);
  EXPECT_EQ(flipped(60, false), QNL_CORRUPT_HEADER);
  expect_said("bundle header", again);
  EXPECT_EQ(flipped(100, false), QNL_CORRUPT_STRUCTURE);
  expect_said("bundle structure", again);
  EXPECT_EQ(flipped(structure->segments()->Get(0)->offset() - 1, false), QNL_CORRUPT_STRUCTURE);
  expect_said("segment 0: ", zeros);
  EXPECT_EQ(flipped(structure->segments()->Get(0)->offset() + 200, false), QNL_CORRUPT_CODE);
  expect_said("code segment", again);
  EXPECT_EQ(flipped(structure->segments()->Get(1)->offset() + 5000, false), QNL_OK)
      << "weights are only mapped";
  EXPECT_EQ(flipped(structure->segments()->Get(1)->offset() + 5000, true), QNL_CORRUPT_CONSTANTS);
  expect_said("constants", again);
  EXPECT_EQ(flipped(structure->segments()->Get(2)->offset() - 1, true), QNL_CORRUPT_CONSTANTS);
  expect_said("segment 2: ", zeros);
}

TEST(Bundle, header_says_what_is_needed) {
  auto changed = [](size_t at, auto value) {
    std::vector<std::byte> bytes = valid_bytes();
    put(bytes, at, value);
    rehash(bytes);
    return open(bytes);
  };
  Opened big = changed(4, uint32_t{0x04030201});
  EXPECT_EQ(big.status, QNL_WRONG_BYTE_ORDER);
  EXPECT_EQ(big.text, "bundle: expected little-endian, found big-endian");
  Opened neither = changed(4, uint32_t{7});
  EXPECT_EQ(neither.status, QNL_WRONG_BYTE_ORDER);
  EXPECT_EQ(neither.text, "bundle: byte order mark is neither little- nor big-endian");
  Opened schema = changed(8, uint32_t{2});
  EXPECT_EQ(schema.status, QNL_NEWER_SCHEMA);
  EXPECT_EQ(schema.text, "bundle: expected schema version 1 to 1, found 2; use a newer runtime");
  Opened runtime = changed(12, uint32_t{0x7F0000});
  EXPECT_EQ(runtime.status, QNL_NEWER_RUNTIME_NEEDED);
  EXPECT_EQ(runtime.text.rfind("bundle: needs runtime 127.0.0 or newer, this one is ", 0), 0u)
      << runtime.text;
  EXPECT_EQ(changed(16, uint64_t{3}).status, QNL_OK) << "features that are implemented but not used";
  Opened unknown = changed(16, uint64_t{1} << 40);
  EXPECT_EQ(unknown.status, QNL_UNKNOWN_FEATURE);
  EXPECT_EQ(unknown.text,
            "bundle: needs feature bit 40, which this runtime does not know; use a newer runtime");
  EXPECT_EQ(changed(24, uint64_t{1} << 60).status, QNL_INVALID_BUNDLE) << "structure outside the file";
  EXPECT_EQ(changed(32, ~uint64_t{0}).status, QNL_INVALID_BUNDLE);
}

TEST(Bundle, a_writer_that_uses_symbols_sets_their_feature) {
  bundle::BundleContents contents = test_contents();
  contents.symbols.push_back({"batch", 1, 8, 1});
  std::vector<std::byte> bytes = bundle_bytes(contents);
  EXPECT_EQ(static_cast<int>(bytes[16]), 1);
  EXPECT_EQ(open(bytes).status, QNL_OK);
  put(bytes, 16, uint64_t{0});
  rehash(bytes);
  Opened without = open(bytes);
  EXPECT_EQ(without.status, QNL_INVALID_BUNDLE);
  EXPECT_NE(without.text.find("'symbols'"), std::string::npos) << without.text;
}

TEST(Bundle, segment_ranges_are_checked) {
  auto with_segment = [](uint32_t index, int field, uint64_t value) {
    return open_changed([&](schema::Bundle* b) {
      poke(reinterpret_cast<const char*>(b->segments()->Get(index)) + 8 * field, value);
    });
  };
  EXPECT_EQ(with_segment(1, 0, 4097).status, QNL_INVALID_BUNDLE) << "not page-aligned";
  EXPECT_EQ(with_segment(1, 0, uint64_t{1} << 63).status, QNL_INVALID_BUNDLE);
  EXPECT_EQ(with_segment(1, 0, 0).status, QNL_INVALID_BUNDLE) << "overlaps";
  EXPECT_EQ(with_segment(2, 1, ~uint64_t{0}).status, QNL_INVALID_BUNDLE) << "offset + size overflows";
  EXPECT_EQ(with_segment(2, 1, 1).status, QNL_INVALID_BUNDLE) << "does not end the file";
  EXPECT_EQ(with_segment(0, 3, 9).status, QNL_INVALID_BUNDLE) << "unknown kind";
}

const schema::Item* item_of(schema::Bundle* b, uint32_t entry, uint32_t item) {
  return b->entry_points()->Get(entry)->plans()->Get(0)->items()->Get(item);
}

TEST(Bundle, bindings_and_edges_are_checked) {
  auto with_binding = [](int offset, auto value) {
    return open_changed([&](schema::Bundle* b) {
      poke(reinterpret_cast<const char*>(item_of(b, 0, 1)->bindings()->Get(0)) + offset, value);
    });
  };
  EXPECT_EQ(with_binding(0, uint32_t{1000}).status, QNL_INVALID_BUNDLE) << "no such arena";
  EXPECT_EQ(with_binding(4, uint8_t{3}).status, QNL_INVALID_BUNDLE) << "unknown access";
  EXPECT_EQ(with_binding(8, uint64_t{65}).status, QNL_INVALID_BUNDLE) << "leaves its arena";
  EXPECT_EQ(with_binding(8, ~uint64_t{0}).status, QNL_INVALID_BUNDLE) << "offset + size overflows";
  EXPECT_EQ(with_binding(16, ~uint64_t{0}).status, QNL_INVALID_BUNDLE);
  Opened constants = open_changed([](schema::Bundle* b) {
    poke(reinterpret_cast<const char*>(item_of(b, 0, 1)->bindings()->Get(1)) + 4, uint8_t{1});
  });
  EXPECT_EQ(constants.status, QNL_INVALID_BUNDLE);
  EXPECT_NE(constants.text.find("writes to constants"), std::string::npos) << constants.text;
  Opened input = open_changed([](schema::Bundle* b) {
    poke(reinterpret_cast<const char*>(item_of(b, 0, 0)->bindings()->Get(0)) + 4, uint8_t{2});
  });
  EXPECT_NE(input.text.find("writes to an input"), std::string::npos) << input.text;
  Opened foreign = open_changed([](schema::Bundle* b) {  // slot of another entry point
    poke(item_of(b, 4, 0)->bindings()->Get(1), uint32_t{4});
  });
  EXPECT_NE(foreign.text.find("another entry point"), std::string::npos) << foreign.text;
  Opened cycle =
      open_changed([](schema::Bundle* b) { poke(item_of(b, 0, 1)->edges()->Get(0), uint32_t{1}); });
  EXPECT_NE(cycle.text.find("earlier"), std::string::npos) << cycle.text;
}

TEST(Bundle, copies_are_checked) {
  auto with_loop = [](int offset, uint64_t value) {
    return open_changed([&](schema::Bundle* b) {
      poke(reinterpret_cast<const char*>(item_of(b, 2, 0)->copy_loops()->Get(0)) + offset, value);
    });
  };
  EXPECT_EQ(with_loop(0, 5).status, QNL_INVALID_BUNDLE) << "reads past the end";
  EXPECT_EQ(with_loop(0, 0).status, QNL_INVALID_BUNDLE) << "empty";
  EXPECT_EQ(with_loop(0, uint64_t{1} << 62).status, QNL_INVALID_BUNDLE);
  EXPECT_EQ(with_loop(8, uint64_t{1} << 62).status, QNL_INVALID_BUNDLE) << "stride overflows";
  EXPECT_EQ(with_loop(16, 1000).status, QNL_INVALID_BUNDLE) << "writes past the end";
}

TEST(Bundle, tensors_and_arenas_are_checked) {
  auto shape = [](int64_t dim) {
    return open_changed(
        [&](schema::Bundle* b) { poke(b->entry_points()->Get(0)->inputs()->Get(0)->shape()->Data(), dim); });
  };
  EXPECT_EQ(shape(-1).status, QNL_INVALID_BUNDLE);
  EXPECT_EQ(shape(63).status, QNL_INVALID_BUNDLE) << "bytes do not follow from the shape";
  EXPECT_EQ(shape(int64_t{1} << 62).status, QNL_INVALID_BUNDLE);
}

bundle::BundleContents with_name_twice() {
  bundle::BundleContents contents = test_contents();
  contents.entry_points[3].name = "main";
  return contents;
}

TEST(Bundle, writer_refuses_contradictions) {
  auto refused = [](auto change) {
    bundle::BundleContents contents = test_contents();
    change(contents);
    std::string path = temporary_path("refused.qnl");
    auto result = bundle::write_bundle(contents, path);
    EXPECT_EQ(access(path.c_str(), F_OK), -1) << "something was written";
    return !result;
  };
  EXPECT_FALSE(bundle::write_bundle(with_name_twice(), temporary_path("twice.qnl")));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].plans.pop_back(); }));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].plans[0].items[0].kernel = 99; }));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].plans[0].items[0].bindings[0].offset = 4; }));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].plans[0].items[1].edges[0].item = 1; }));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].inputs[1].name = "a"; }));
  EXPECT_TRUE(refused([](auto& c) { c.entry_points[0].inputs[1].arena = 2; }));
  EXPECT_TRUE(refused([](auto& c) { c.constants[0].pieces[1].offset = 4; }));
  EXPECT_TRUE(refused([](auto& c) { c.constants[0].pieces[1].bytes += 1; }));
  EXPECT_TRUE(refused([](auto& c) {  // a producer that gives less than it promised
    c.constants[0].pieces[1].produce = [](const bundle::ByteSink&) {};
  }));
  EXPECT_TRUE(refused([](auto& c) { c.test_vectors[0].tensors[0].value.resize(4); }));
}

TEST(Bundle, read_and_written_again_is_the_same) {
  for (const bundle::BundleContents& contents : {test_contents(), symbolic_contents(), custom_contents()}) {
    std::string first = temporary_path("first.qnl"), second = temporary_path("second.qnl");
    ASSERT_TRUE(bundle::write_bundle(contents, first));
    Bundle opened;
    ASSERT_EQ(opened.open(first.c_str()), QNL_OK);
    const platform::MappedFile& file = opened.get()->file;
    ASSERT_TRUE(bundle::write_bundle(
        bundle::read_bundle({static_cast<const std::byte*>(file.data), file.bytes}), second));
    std::ifstream a(first, std::ios::binary), b(second, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(a), {}),
              std::string(std::istreambuf_iterator<char>(b), {}));
  }
}

TEST(Bundle, test_vectors) {
  AlignedBytes aligned(valid_bytes());
  Bundle bundle;
  ASSERT_EQ(bundle.open(aligned.data(), aligned.size()), QNL_OK);
  qnl_test_info info;
  ASSERT_EQ(qnl_bundle_get_test(bundle.get(), 0, &info), QNL_OK);
  EXPECT_STREQ(info.name, "zeros");
  EXPECT_EQ(info.entry_point, 1u);
  ASSERT_EQ(info.tensor_count, 2u);
  EXPECT_EQ(qnl_bundle_get_test(bundle.get(), 1, &info), QNL_INVALID_ARGUMENT);
  qnl_test_tensor t;
  ASSERT_EQ(qnl_bundle_get_test_tensor(bundle.get(), 0, 1, &t), QNL_OK);
  EXPECT_EQ(t.role, QNL_OUTPUT);
  EXPECT_EQ(t.tensor.rank, 1u);
  EXPECT_EQ(t.tensor.shape[0], 16);
  EXPECT_EQ(t.tensor.bytes, 64u);
  EXPECT_EQ(t.rtol, 1e-3);
  EXPECT_EQ(t.mean_atol, -1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.tensor.data) % 64, 0u);
  EXPECT_EQ(qnl_bundle_get_test_tensor(bundle.get(), 0, 2, &t), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(qnl_bundle_get_test_tensor(bundle.get(), 1, 0, &t), QNL_INVALID_ARGUMENT);
}

// Sums of ones, every one pushed just before it is added.
std::vector<int64_t> sum_of_ones(int count) {
  std::vector<int64_t> code = {0, 1};
  for (int i = 1; i < count; ++i) code.insert(code.end(), {0, 1, 2, 0});
  return code;
}

TEST(Bundle, sizes_beyond_the_limits_are_refused) {
  auto opened = [](int count, auto change) {
    bundle::BundleContents contents = symbolic_contents();
    contents.expressions[1].code = sum_of_ones(count);
    std::vector<std::byte> bytes = bundle_bytes(contents);
    change(const_cast<schema::Bundle*>(structure_of(bytes))->expressions()->Get(1)->code());
    rehash(bytes);
    return open(bytes);
  };
  EXPECT_EQ(opened(512, [](auto*) {}).status, QNL_OK) << "1023 steps";
  EXPECT_EQ(opened(512, [](auto* code) { poke(code, uint32_t{2 * 1025}); }).status, QNL_INVALID_BUNDLE)
      << "1025 steps: a vector begins with its length";
  EXPECT_EQ(opened(33,
                   [](auto* code) {
                     for (uint32_t i = 0; i < 65; ++i) {
                       poke(code->Data() + 16 * i, int64_t{i < 33 ? 0 : 2});
                       poke(code->Data() + 16 * i + 8, int64_t{i < 33 ? 1 : 0});
                     }
                   })
                .status,
            QNL_INVALID_BUNDLE)
      << "33 values on the stack";

  for (bool deep : {false, true}) {  // and are not written
    bundle::BundleContents contents = symbolic_contents();
    std::vector<int64_t>& code = contents.expressions[1].code;
    code = sum_of_ones(deep ? 1 : 513);
    for (int i = 1; deep && i < 33; ++i) code.insert(code.begin(), {0, 1}), code.insert(code.end(), {2, 0});
    auto result = bundle::write_bundle(contents, temporary_path("limits.qnl"));
    ASSERT_FALSE(result);
    EXPECT_NE(to_string(result.errors()).find("expected sizes of at most 1024 steps and 32 values at once"),
              std::string::npos)
        << to_string(result.errors());
  }
}

// What is written can be opened: models of very many inputs and outputs are refused where they are compiled.
TEST(Bundle, reader_and_writer_have_one_limit_of_inputs_and_outputs) {
  auto with = [](size_t inputs, size_t outputs) {
    bundle::BundleContents contents = test_contents();
    auto extend = [&](std::vector<bundle::Tensor>& tensors, size_t count) {
      while (tensors.size() < count) {
        bundle::Tensor& more = tensors.emplace_back(bundle::Tensor(tensors[0]));
        more.name = "tensor_" + std::to_string(tensors.size());
        contents.arenas.push_back(bundle::Arena(contents.arenas[more.arena]));
        more.arena = static_cast<uint32_t>(contents.arenas.size()) - 1;
      }
    };
    extend(contents.entry_points[0].inputs, inputs);
    extend(contents.entry_points[0].outputs, outputs);
    return contents;
  };
  Opened opened = open(bundle_bytes(with(10'000, 10'000)));
  EXPECT_EQ(opened.status, QNL_OK) << opened.text;
  auto expect_refused = [](const bundle::BundleContents& contents, const char* text) {
    Status counts = bundle::check_counts(contents);
    ASSERT_FALSE(counts);
    EXPECT_NE(to_string(counts.errors()).find(text), std::string::npos) << to_string(counts.errors());
  };
  expect_refused(with(65'537, 1), "expected at most 65536 inputs of '");
  expect_refused(with(1, 65'537), "expected at most 65536 outputs of '");
  expect_refused(with(40'000, 40'000),
                 "expected at most 65536 inputs, outputs, states and other buffers in all, found 8");
}

// Found by fuzzing: a dispatch with copy loops, which nothing uses but the reader hands out.
TEST(Bundle, too_many_copy_loops_of_a_dispatch) {
  Opened opened = open_changed([](schema::Bundle* b) {
    poke(item_of(b, 2, 0)->copy_loops(), uint32_t{5});  // a vector begins with its length
  });
  EXPECT_EQ(opened.status, QNL_INVALID_BUNDLE);
  EXPECT_NE(opened.text.find("copy loops"), std::string::npos) << opened.text;
}

TEST(Bundle, unwritable_paths_give_a_diagnostic) {
  bundle::BundleContents contents = test_contents();
  for (const std::string& path :
       {std::string("/no/such/directory/x.qnl"), std::string("/dev/null"), std::string("/")}) {
    auto result = bundle::write_bundle(contents, path);
    ASSERT_FALSE(result) << path;
    EXPECT_NE(to_string(result.errors()).find(path), std::string::npos);
  }
  EXPECT_EQ(bundle::write_bundle(contents, "/dev/null").errors()[0].message,
            "output '/dev/null': expected a regular file or nothing, found a special file");
  struct stat info;
  ASSERT_EQ(stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(Bundle, files_that_cannot_be_opened) {
  Bundle bundle;
  qnl_error error = {};
  EXPECT_EQ(bundle.open("/no/such/file.qnl", nullptr, &error), QNL_FILE_NOT_FOUND);
  EXPECT_NE(std::string(error.text).find("/no/such/file.qnl"), std::string::npos);
  EXPECT_EQ(bundle.open("/", nullptr, &error), QNL_FILE_UNREADABLE);
  EXPECT_EQ(bundle.open("/dev/null", nullptr, &error), QNL_FILE_UNREADABLE);
  std::string empty = temporary_path("empty.qnl");
  std::ofstream(empty).close();
  EXPECT_EQ(bundle.open(empty.c_str(), nullptr, &error), QNL_NOT_A_BUNDLE);
}

TEST(Bundle, memory_of_the_caller) {
  AlignedBytes aligned(valid_bytes());
  alignas(64) static char memory[4096];
  ASSERT_LE(qnl_bundle_memory_bytes(), sizeof memory);
  qnl_bundle_options options = {};
  options.memory = memory;
  options.memory_bytes = qnl_bundle_memory_bytes();
  Bundle bundle;
  ASSERT_EQ(bundle.open(aligned.data(), aligned.size(), &options), QNL_OK);
  EXPECT_EQ(static_cast<void*>(bundle.get()), memory);
  options.memory_bytes -= 1;
  Bundle other;
  qnl_error error = {};
  EXPECT_EQ(other.open(aligned.data(), aligned.size(), &options, &error), QNL_MEMORY_TOO_SMALL);
  EXPECT_EQ(error.text, "bundle memory: expected " + std::to_string(qnl_bundle_memory_bytes()) +
                            " bytes, 64-byte aligned, found " + std::to_string(options.memory_bytes));
  EXPECT_EQ(other.open(static_cast<const char*>(aligned.data()) + 8, 100, nullptr, &error),
            QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "bundle memory: expected 64-byte alignment");
}

TEST(Bundle, arguments_are_needed) {
  AlignedBytes aligned(valid_bytes());
  qnl_bundle* bundle = nullptr;
  qnl_error error = {};
  EXPECT_EQ(qnl_bundle_open_file(nullptr, nullptr, &bundle, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "bundle: expected a path and a place for the result");
  EXPECT_EQ(qnl_bundle_open_file("x.qnl", nullptr, nullptr, &error), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(qnl_bundle_open_memory(nullptr, 64, nullptr, &bundle, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "bundle: expected data and a place for the result");
  EXPECT_EQ(qnl_bundle_open_memory(aligned.data(), aligned.size(), nullptr, nullptr, &error),
            QNL_INVALID_ARGUMENT);
}

// Bytes between the header and the structure may not carry anything.
TEST(Bundle, gap_before_the_structure_is_zero) {
  std::vector<std::byte> bytes = valid_bytes();
  uint64_t structure_bytes, file_bytes = bytes.size() + 4096, offset = 128;
  std::memcpy(&structure_bytes, bytes.data() + 32, 8);
  std::vector<std::byte> moved(file_bytes);
  std::memcpy(moved.data(), bytes.data(), 64);
  moved[100] = std::byte{1};
  std::memcpy(moved.data() + 128, bytes.data() + 64, structure_bytes);
  put(moved, 24, offset);
  put(moved, 48, file_bytes);
  rehash(moved);
  Opened opened = open(moved);
  EXPECT_EQ(opened.status, QNL_CORRUPT_STRUCTURE);
  EXPECT_EQ(opened.text, "bundle: expected zeros before the structure");
}

TEST(Status, some_texts) {
  EXPECT_STREQ(qnl_status_text(QNL_FILE_UNREADABLE), "file cannot be read");
  EXPECT_STREQ(qnl_status_text(QNL_UNKNOWN_FEATURE), "needs an unknown feature");
  EXPECT_STREQ(qnl_status_text(QNL_MALFORMED_IMAGE), "malformed code image");
  EXPECT_STREQ(qnl_status_text(QNL_UNKNOWN_NAME), "unknown name");
}

TEST(FeatureNames, are_those_of_the_list) {
#define QNL_ARCHITECTURE(NAME, number, name) EXPECT_STREQ(runtime::arch_name(QNL_ARCH_##NAME), name);
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  EXPECT_STREQ(runtime::feature_name(QNL_ARCH_##arch, bit), name);
#include "schemas/features.def"
  EXPECT_STREQ(runtime::feature_name(QNL_ARCH_RISCV32, 1), "v");
  EXPECT_EQ(runtime::feature_name(QNL_ARCH_X86_64, 4), nullptr);
  EXPECT_STREQ(runtime::arch_name(9999), "unknown architecture");
  char text[32];
  runtime::TextBuilder(text, sizeof text).append_features(QNL_ARCH_X86_64, QNL_X86_64_V1 | 1 << 4);
  EXPECT_STREQ(text, "x86-64-v1 bit-4");
}

TEST(Status, every_code_has_text) {
  for (int code : {0,   100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 200, 201, 202, 203, 204, 205, 300,
                   301, 302, 303, 304, 305, 306, 307, 308, 309, 310, 400, 401, 402, 500, 501, 502, 503})
    EXPECT_STRNE(qnl_status_text(static_cast<qnl_status>(code)), "unknown status") << code;
  EXPECT_STREQ(qnl_status_text(static_cast<qnl_status>(999)), "unknown status");
}

}  // namespace
}  // namespace quernel::test
