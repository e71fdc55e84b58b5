// Tensor files: what is written is read again, what others write is read, and damaged files give a message.
#include "tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "quernel/runtime.h"
#include "test_bundle.h"

namespace quernel::tensor_file {
namespace {

constexpr qnl_dtype kAllTypes[] = {QNL_F32,  QNL_F16, QNL_BF16, QNL_F64,    QNL_I8,    QNL_U8,
                                   QNL_I16,  QNL_U16, QNL_I32,  QNL_U32,    QNL_I64,   QNL_U64,
                                   QNL_BOOL, QNL_I4,  QNL_U4,   QNL_F8E4M3, QNL_F8E5M2};

std::vector<std::byte> to_bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

HostTensor random_tensor(qnl_dtype dtype, std::vector<int64_t> shape, uint64_t seed = 1) {
  HostTensor tensor;
  tensor.name = "t";
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  fill_random(seed, &tensor);
  return tensor;
}

TEST(TensorFile, pb_round_trip_of_every_type) {
  for (qnl_dtype dtype : kAllTypes) {
    HostTensor in = random_tensor(dtype, {3, 1, 5}), out;
    std::string path = test::temporary_path("t.pb");
    ASSERT_EQ(write_pb(path, in), std::nullopt);
    ASSERT_EQ(read_pb(path, &out), std::nullopt) << qnl_dtype_name(dtype);
    EXPECT_EQ(out.dtype, dtype);
    EXPECT_EQ(out.shape, in.shape);
    EXPECT_EQ(out.name, "t");
    EXPECT_EQ(out.bytes, in.bytes);
  }
}

TEST(TensorFile, npy_round_trip) {
  for (qnl_dtype dtype : kAllTypes) {
    HostTensor in = random_tensor(dtype, {4, 3}), out;
    std::string path = test::temporary_path("t.npy");
    ASSERT_EQ(write_npy(path, in), std::nullopt);
    ASSERT_EQ(read_npy(path, &out), std::nullopt) << qnl_dtype_name(dtype);
    ASSERT_EQ(out.shape, in.shape);
    for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(value_at(out, i), value_at(in, i)) << qnl_dtype_name(dtype);
  }
  HostTensor scalar = random_tensor(QNL_F32, {}), vector = random_tensor(QNL_I64, {7}), empty, out;
  empty = random_tensor(QNL_F32, {0, 4});
  for (const HostTensor& in : {scalar, vector, empty}) {
    std::string path = test::temporary_path("t.npy");
    ASSERT_EQ(write_npy(path, in), std::nullopt);
    ASSERT_EQ(read_npy(path, &out), std::nullopt);
    EXPECT_EQ(out.shape, in.shape);
    EXPECT_EQ(out.bytes, in.bytes);
  }
}

std::string npy(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01", 7);
  file += '\0';
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header + data;
}

TEST(TensorFile, npy_fortran_order_is_transposed) {
  HostTensor out;
  std::string data("\1\2\3\4\5\6", 6);
  ASSERT_EQ(
      parse_npy(to_bytes(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", data)), &out),
      std::nullopt);
  const double expected[] = {1, 3, 5, 2, 4, 6};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(value_at(out, i), expected[i]);
}

TEST(TensorFile, bad_npy_gives_a_message) {
  HostTensor out;
  const std::pair<std::string, const char*> kCases[] = {
      {"", "expected a .npy file"},
      {"hello, this is text", "expected a .npy file"},
      {"\x93NUMPY\x07 and more of it", "npy header: unknown format version"},
      {std::string("\x93NUMPY\x01\0\xff\xff{", 11), "npy header: longer than the file"},
      {npy("{'shape': (2,), }", "12345678"), "npy header: expected 'descr': a simple type"},
      {npy("{'descr': '<f4', 'shape': (2,), }", "1234567"),
       "npy data: expected the bytes of its shape, found 7"},
      {npy("{'descr': '>f4', 'shape': (1,), }", "1234"),
       "npy header: expected one of <f2 <f4 <f8 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 |b1, found '>f4'"},
      {npy("{'descr': '<c8', 'shape': (1,), }", "12345678"), "found '<c8'"},
      {npy("{'descr': '<f4', 'shape': (999999999999999999, 999999999999999999), }", ""),
       "npy data: expected the bytes of its shape, found 0"},
      {npy("{'descr': '<f4'}", ""), "npy header: expected 'shape': a tuple"},
      {npy("{'descr': '<f4', 'shape': (-1,), }", ""), "npy header: malformed shape or rank above 8"},
      {npy("{'descr': '<f4', 'shape': (", ""), "npy header: malformed shape or rank above 8"},
      {npy("{'descr': '<f4', 'shape': (1,1,1,1,1,1,1,1,1), }", "1234"),
       "npy header: malformed shape or rank above 8"}};
  for (const auto& [bad, says] : kCases) {
    Error error = parse_npy(to_bytes(bad), &out);
    ASSERT_TRUE(error) << bad;
    EXPECT_NE(error->find(says), std::string::npos) << *error;
  }
  std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_TRUE(parse_npy(to_bytes(good.substr(0, length)), &out)) << length;
}

TEST(TensorFile, pb_typed_fields) {
  HostTensor out;
  // dims 2; data_type FLOAT; float_data packed {1.0, -2.0}; name "x"
  std::string packed("\x08\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\xc0\x42\x01x", 17);
  ASSERT_EQ(parse_pb(to_bytes(packed), &out), std::nullopt);
  EXPECT_EQ(out.name, "x");
  EXPECT_EQ(value_at(out, 0), 1.0);
  EXPECT_EQ(value_at(out, 1), -2.0);
  // dims 2 (packed); data_type INT64; int64_data one by one {5, -1}
  std::string unpacked("\x0a\x01\x02\x10\x07\x38\x05\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 18);
  ASSERT_EQ(parse_pb(to_bytes(unpacked), &out), std::nullopt);
  EXPECT_EQ(value_at(out, 0), 5.0);
  EXPECT_EQ(value_at(out, 1), -1.0);
  // data_type FLOAT16 (10); int32_data {0x3C00}: the bits of 1.0
  std::string half("\x10\x0a\x2a\x02\x80\x78", 6);
  ASSERT_EQ(parse_pb(to_bytes(half), &out), std::nullopt);
  EXPECT_EQ(value_at(out, 0), 1.0);
  // data_type BOOL; int32_data {1}
  ASSERT_EQ(parse_pb(to_bytes(std::string("\x10\x09\x2a\x01\x01", 5)), &out), std::nullopt);
  EXPECT_EQ(value_at(out, 0), 1.0);
}

TEST(TensorFile, bad_pb_gives_a_message) {
  HostTensor out;
  std::string good("\x08\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\xc0\x42\x01x", 17);
  for (size_t length = 0; length < 14; ++length)
    EXPECT_TRUE(parse_pb(to_bytes(good.substr(0, length)), &out)) << length;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      (void)parse_pb(to_bytes(bad), &out);  // any answer, no crash
    }
  }
  const std::pair<std::string, const char*> kCases[] = {
      {std::string("\x08\x02\x10\x08", 4), "TensorProto: data type 8 is not supported"},
      {std::string("\x10\x01\x70\x01\x4a\x00", 6),
       "TensorProto: its data is in another file, which is not supported here"},
      {std::string("\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x01\x4a\x00", 13),
       "TensorProto: its shape is negative or too large"},
      {std::string("\x08\x02\x10\x01", 4), "TensorProto: expected raw data or the field of its data type"},
      {std::string("\x08\x03\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\xc0", 14),
       "TensorProto: expected 3 values, found 2"},
      {std::string("\x08\x02\x10\x01\x4a\x04\x00\x00\x80\x3f", 10), "bytes of raw data, found 4"},
      {"hello", "expected an ONNX TensorProto, found something else or a damaged one"}};
  for (const auto& [bad, says] : kCases) {
    Error error = parse_pb(to_bytes(bad), &out);
    ASSERT_TRUE(error) << says;
    EXPECT_NE(error->find(says), std::string::npos) << *error;
  }
}

TEST(TensorFile, random_is_the_same_everywhere) {
  HostTensor a = random_tensor(QNL_F32, {4}, 42);
  EXPECT_EQ(a.bytes, random_tensor(QNL_F32, {4}, 42).bytes);
  EXPECT_NE(a.bytes, random_tensor(QNL_F32, {4}, 43).bytes);
  EXPECT_EQ(static_cast<float>(value_at(a, 0)), 0.48312973976135254f);
  for (qnl_dtype dtype : kAllTypes) {
    HostTensor t = random_tensor(dtype, {1000});
    for (uint64_t i = 0; i < 1000; ++i) {
      bool real = dtype <= QNL_F64 || dtype >= QNL_F8E4M3;
      ASSERT_LT(value_at(t, i), real ? 1.0 + 1e-3 : 8.0) << qnl_dtype_name(dtype);
      ASSERT_GE(value_at(t, i), real ? -1.0 - 1e-3 : dtype == QNL_I4 ? -8.0 : 0.0) << qnl_dtype_name(dtype);
    }
  }
}

TEST(TensorFile, random_values_fill_memory_that_held_others) {
  for (qnl_dtype dtype : kAllTypes) {
    HostTensor expected = random_tensor(dtype, {37}, 5);
    std::vector<std::byte> memory(expected.bytes.size() + 1, std::byte{0xAB});
    fill_random(5, dtype, 37, memory.data());
    EXPECT_EQ(memory.back(), std::byte{0xAB}) << qnl_dtype_name(dtype);
    memory.pop_back();
    EXPECT_EQ(memory, expected.bytes) << qnl_dtype_name(dtype);
  }
  EXPECT_EQ(seed_of("random:17"), 17u);
  for (const char* other : {"random:", "random:x", "random:1:2x3", "raw:1", "t.npy"})
    EXPECT_EQ(seed_of(other), std::nullopt) << other;
}

TEST(TensorFile, words_stand_for_bf16_where_it_is_expected) {
  HostTensor words = random_tensor(QNL_U16, {3}), out;
  std::string path = test::temporary_path("words.npy");
  ASSERT_EQ(write_any(path, words), std::nullopt);
  for (qnl_dtype dtype : {QNL_BF16, QNL_U16, QNL_F16}) {
    ASSERT_EQ(read_any(path, random_tensor(dtype, {3}), &out), std::nullopt);
    EXPECT_EQ(out.dtype, dtype == QNL_BF16 ? QNL_BF16 : QNL_U16);
    EXPECT_EQ(out.bytes, words.bytes);
  }
}

TEST(TensorFile, specifications_are_checked) {
  HostTensor expected = random_tensor(QNL_F32, {2}), out;
  auto says = [](const Error& error, const std::string& text) {
    ASSERT_TRUE(error) << text;
    EXPECT_NE(error->find(text), std::string::npos) << *error;
  };
  says(read_any("nothing", expected, &out),
       "'nothing': expected a path ending in .npy or .pb, raw:PATH, random:SEED or random:SEED:2x3x4");
  for (const char* wrong :
       {"random:abc", "random:1:", "random:1:2x", "random:1:x2", "random:1:2x-3", "random:1:2,3"})
    says(read_any(wrong, expected, &out),
         std::string("'") + wrong + "': expected random:SEED, a number, or random:SEED:2x3x4 with a shape");
  says(read_any("/no/such.npy", expected, &out), "'/no/such.npy': cannot be opened: ");
  says(read_any("raw:/no/such", expected, &out), "'/no/such': cannot be opened: ");
  says(read_any("raw:/dev/null", expected, &out), "'/dev/null': expected a regular file");
  says(write_any("/no/such/directory/x.npy", expected), "'/no/such/directory/x.npy': cannot be written: ");
  says(write_any("/dev/null", expected), "'/dev/null': expected a regular file or nothing");
  says(read_any("random:1:99999999x99999999", expected, &out), "tensor 't': its shape is too large");
  ASSERT_EQ(read_any("random:1:2x3", expected, &out), std::nullopt);
  EXPECT_EQ(out.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(out.bytes.size(), 24u);
  std::string path = test::temporary_path("t.bin");
  ASSERT_EQ(write_any(path, expected), std::nullopt);
  ASSERT_EQ(read_any("raw:" + path, expected, &out), std::nullopt);
  EXPECT_EQ(out.bytes, expected.bytes);
  expected.shape = {3};
  says(read_any("raw:" + path, expected, &out), "expected 12 bytes, found 8");
  expected.shape = {int64_t{1} << 40, int64_t{1} << 40};
  says(read_any("random:1", expected, &out), "its shape is too large");
}

}  // namespace
}  // namespace quernel::tensor_file
