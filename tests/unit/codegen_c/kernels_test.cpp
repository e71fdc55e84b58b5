// Kernels printed as C99, compiled by a C compiler, against the machine code of the same kernels:
// the same bits, but for the payloads of NaNs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "codegen/c/print_kernels.h"
#include "compiled_c.h"
#include "host_targets.h"
#include "kernel_maker.h"
#include "loop/evaluate_scalar.h"
#include "loop/passes.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "random_kernel.h"
#include "run_image.h"

namespace quernel::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                            DType::kU8,  DType::kI16, DType::kU16,  DType::kI32, DType::kU32,
                            DType::kI64, DType::kU64, DType::kBool};

using Bytes = std::vector<std::vector<uint8_t>>;

// Of every dtype: small numbers, the ends of the range, any bits.
Bytes contents_for(const loop::Kernel& kernel, uint32_t seed) {
  std::mt19937_64 random(seed);
  Bytes contents;
  for (const loop::Buffer& b : kernel.buffers) {
    auto size = static_cast<size_t>(element_size(b->dtype));
    std::vector<uint8_t>& bytes = contents.emplace_back(static_cast<size_t>(b->size) * size);
    for (size_t i = 0; i < bytes.size(); i += size) {
      uint64_t bits = random();
      uint64_t choice = random() % 8;
      if (choice < 3) bits = static_cast<uint64_t>(static_cast<int64_t>(bits % 65) - 32);
      if (choice == 3) bits = (uint64_t{1} << (bits % 64)) - (bits >> 63);
      if (is_float(b->dtype) && choice < 6) {
        double x = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63;
        bits = loop::double_to_bits(b->dtype, std::ldexp(x, static_cast<int>(random() % 40) - 10));
        if (choice == 0) bits = loop::double_to_bits(b->dtype, std::round(x * 9) * 0.5);
      }
      if (b->dtype == DType::kBool) bits &= 1;
      std::memcpy(&bytes[i], &bits, size);
    }
  }
  return contents;
}

bool same_element(DType dtype, const uint8_t* a, const uint8_t* b) {
  auto size = static_cast<size_t>(element_size(dtype));
  if (std::memcmp(a, b, size) == 0) return true;
  if (!is_float(dtype)) return false;
  uint64_t x = 0, y = 0;
  std::memcpy(&x, a, size);
  std::memcpy(&y, b, size);
  return std::isnan(loop::bits_to_double(dtype, x)) && std::isnan(loop::bits_to_double(dtype, y));
}

// All kernels in one file, each behind a function `call_N(bindings, symbols, scratch)`.
std::string file_of(const std::vector<loop::Kernel>& kernels, const codegen::CKernels& printed) {
  std::string text = "#include <stdint.h>\n" + printed.prelude;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::string arguments, number = std::to_string(k);
    auto add = [&](const std::string& a) { arguments += (arguments.empty() ? "" : ", ") + a; };
    for (size_t i = 0; i < kernels[k].buffers.size(); ++i) add("b[" + std::to_string(i) + "]");
    for (size_t i = 0; i < kernels[k].symbols.size(); ++i) add("s[" + std::to_string(i) + "]");
    if (printed.kernels[k].scratch_bytes != 0) add("scratch");
    text += printed.kernels[k].text + "void call_" + number +
            "(void* const* b, const int64_t* s, unsigned char* scratch);\n" + "void call_" + number +
            "(void* const* b, const int64_t* s, unsigned char* scratch) {\n  (void)b; (void)s; "
            "(void)scratch;\n  kernel_" +
            number + "(" + arguments + ");\n}\n";
  }
  return text;
}

uint64_t workgroups_of(const loop::Kernel& kernel) {
  uint64_t count = 1;
  for (const loop::GridAxis& axis : kernel.grid) {
    int64_t extent = 1;
    EXPECT_TRUE(loop::as_const_int(axis.extent, &extent));
    count *= static_cast<uint64_t>(extent);
  }
  return count;
}

// `c_target`: what the C is for, which runs anywhere if it has no floats.
void expect_same(const std::vector<loop::Kernel>& kernels, const std::string& target_name,
                 const std::string& flags, const std::string& c_target) {
  std::vector<codegen::CFunction> functions;
  for (size_t k = 0; k < kernels.size(); ++k)
    functions.push_back(
        {"kernel_" + std::to_string(k), "static ", std::vector<bool>(kernels[k].buffers.size(), k % 2 == 0)});
  Expected<Target> target = find_target(c_target);
  auto printed = codegen::print_kernels(kernels, *target, functions);
  ASSERT_TRUE(printed) << to_string(printed.errors());
  CompiledC compiled(file_of(kernels, *printed), flags);
  codegen::Image image = compile_or_fail(kernels, target_name);
  if (!compiled.ok() || image.code.empty()) return;
  MappedImage mapped(image.code);
  for (size_t k = 0; k < kernels.size(); ++k) {
    Bytes want = contents_for(kernels[k], static_cast<uint32_t>(k)), got = want;
    auto pointers = [](Bytes& bytes) {
      std::vector<void*> list;
      for (auto& b : bytes) list.push_back(b.data());
      return list;
    };
    std::vector<int64_t> symbols(kernels[k].symbols.size(), 37);
    std::vector<uint8_t> scratch(printed->kernels[k].scratch_bytes + 64);
    void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    ASSERT_EQ(image.scratch_bytes[k], printed->kernels[k].scratch_bytes);
    mapped.call(k, pointers(want), workgroups_of(kernels[k]), symbols, aligned);
    auto call = compiled.function<void(void* const*, const int64_t*, void*)>("call_" + std::to_string(k));
    call(pointers(got).data(), symbols.data(), aligned);
    int shown = 0;
    for (size_t b = 0; b < got.size(); ++b) {
      DType dtype = kernels[k].buffers[b]->dtype;
      auto size = static_cast<size_t>(element_size(dtype));
      for (size_t i = 0; i < got[b].size() && shown < 2; i += size) {
        if (same_element(dtype, &got[b][i], &want[b][i])) continue;
        ++shown;
        uint64_t x = 0, y = 0;
        std::memcpy(&x, &got[b][i], size);
        std::memcpy(&y, &want[b][i], size);
        ADD_FAILURE() << target_name << " " << flags << ": " << kernels[k].name << " buffer " << b
                      << " element " << i / size << ": C has 0x" << std::hex << x << ", machine code 0x" << y
                      << "\n"
                      << printed->kernels[k].text.substr(0, 4000);
      }
    }
  }
}

struct Build {
  const char *target, *flags;
};
// With and without FMA and vectors of several widths; the optimizer may not change results.
constexpr Build kBuilds[] = {{"x86-64", "-O1"}, {"x86-64-v3", "-O2 -mavx2 -mfma"}};

bool runs_here(const std::string& target) {
  for (const std::string& name : host_targets())
    if (name == target) return true;
  return false;
}

void expect_same(const std::vector<loop::Kernel>& kernels) {
  if (std::string missing = missing_c_compiler(); !missing.empty()) GTEST_SKIP() << missing;
  for (const Build& build : kBuilds)
    if (runs_here(build.target)) expect_same(kernels, build.target, build.flags, build.target);
}

using Operation = std::function<loop::Expr(const std::vector<loop::Expr>&)>;

// out[i] = f(a[i], b[i], c[i]) over vectors.
loop::Kernel elementwise_kernel(const std::string& name, DType in, DType out, int lanes, const Operation& f) {
  return elementwise(name, {in, in, in}, out, 480, lanes, f);
}

TEST(CKernels, unary_operations) {
  std::vector<loop::Kernel> kernels;
  for (DType dtype : kTypes)
    for (int op = 0; op <= static_cast<int>(UnaryOp::k_is_inf); ++op) {
      auto unary = static_cast<UnaryOp>(op);
      if (!loop::unary_accepts(unary, dtype)) continue;
      DType out = is_predicate(unary) ? DType::kBool : dtype;
      for (int lanes : {1, 8})
        kernels.push_back(
            elementwise_kernel(std::string(to_string(unary)) + "_" + std::string(to_string(dtype)), dtype,
                               out, lanes, [=](const auto& x) { return loop::unary(unary, x[0]); }));
    }
  expect_same(kernels);
}

TEST(CKernels, binary_operations) {
  std::vector<loop::Kernel> kernels;
  for (DType dtype : kTypes)
    for (int op = 0; op <= static_cast<int>(BinaryOp::k_ge); ++op) {
      auto binary = static_cast<BinaryOp>(op);
      if (!loop::binary_accepts(binary, dtype)) continue;
      std::string name = std::string(to_string(binary)) + "_" + std::string(to_string(dtype));
      DType out = is_comparison(binary) ? DType::kBool : dtype;
      for (int lanes : {1, 8})
        kernels.push_back(elementwise_kernel(
            name, dtype, out, lanes, [=](const auto& x) { return loop::binary(binary, x[0], x[1]); }));
      bool stands_for_all =
          dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kU8 || dtype == DType::kI32;
      if (!stands_for_all) continue;
      for (int64_t number : {-1, 0, 1, 4, 7})
        kernels.push_back(
            elementwise_kernel(name + "_" + std::to_string(number), dtype, out, 4, [=](const auto& x) {
              loop::Expr constant = is_float(dtype)
                                        ? loop::const_float(dtype, static_cast<double>(number) / 2, 4)
                                        : loop::const_int(dtype, number, 4);
              return loop::binary(binary, x[0], constant);
            }));
    }
  expect_same(kernels);
}

TEST(CKernels, casts_and_bitcasts) {
  std::vector<loop::Kernel> kernels;
  std::vector<DType> types(std::begin(kTypes), std::end(kTypes));
  types.insert(types.end(), {DType::kF8E4M3, DType::kF8E5M2});
  for (DType from : types)
    for (DType to : types) {
      std::string name = std::string(to_string(from)) + "_to_" + std::string(to_string(to));
      for (int lanes : {1, 8})
        kernels.push_back(
            elementwise_kernel(name, from, to, lanes, [=](const auto& x) { return loop::cast(to, x[0]); }));
      if (bit_width(from) == bit_width(to) && to != DType::kBool)
        kernels.push_back(elementwise_kernel("bits_of_" + name, from, to, 8, [=](const auto& x) {
          return loop::bitcast({to, 8}, x[0]);
        }));
    }
  expect_same(kernels);
}

// Sums of products, folds of lanes, selections, words of bytes, interleaved lanes.
TEST(CKernels, other_expressions) {
  std::vector<loop::Kernel> kernels;
  for (DType dtype : kTypes) {
    std::string name(to_string(dtype));
    if (dtype != DType::kBool)
      for (int lanes : {1, 8})
        kernels.push_back(elementwise_kernel("mul_acc_" + name, dtype, dtype, lanes,
                                             [](const auto& x) { return loop::mul_acc(x[0], x[1], x[2]); }));
    for (BinaryOp op : {BinaryOp::k_add, BinaryOp::k_mul, BinaryOp::k_max, BinaryOp::k_min, BinaryOp::k_and,
                        BinaryOp::k_or})
      if (loop::binary_accepts(op, dtype))
        for (int lanes : {5, 8})
          kernels.push_back(elementwise_kernel(
              "fold_" + std::string(to_string(op)) + "_" + name, dtype, dtype, lanes,
              [=](const auto& x) { return loop::broadcast(loop::reduce_lanes(op, x[0]), lanes); }));
    kernels.push_back(elementwise_kernel("interleave_" + name, dtype, dtype, 8, [](const auto& x) {
      return loop::interleave(true, loop::interleave(false, x[0], x[1]), x[2]);
    }));
    kernels.push_back(elementwise_kernel("select_" + name, dtype, dtype, 8, [](const auto& x) {
      return loop::select(loop::binary(BinaryOp::k_lt, x[0], x[1]), x[2], x[0]);
    }));
  }
  for (DType a : {DType::kI32, DType::kU32})
    for (DType b : {DType::kI32, DType::kU32})
      kernels.push_back(elementwise_kernel("dot", DType::kI32, DType::kI32, 8, [=](const auto& x) {
        return loop::dot(loop::bitcast({a, 8}, x[0]), loop::bitcast({b, 8}, x[1]), x[2]);
      }));
  for (DType a : {DType::kI32, DType::kU32})
    for (DType b : {DType::kI32, DType::kU32})
      kernels.push_back(elementwise_kernel("dot_2x2", DType::kI32, DType::kI32, 4, [=](const auto& x) {
        return loop::dot_2x2(loop::bitcast({a, 4}, x[0]), loop::bitcast({b, 4}, x[1]), x[2]);
      }));
  kernels.push_back(elementwise_kernel("dot_in_halves", DType::kU32, DType::kU32, 8, [](const auto& x) {
    loop::Expr small = loop::binary(BinaryOp::k_and, x[0], loop::const_int(DType::kU32, 0x0f0f0f0f, 8));
    return loop::dot(small, loop::bitcast({DType::kI32, 8}, x[1]), x[2]);
  }));
  expect_same(kernels);
}

// What requantization is made of: the upper half of a product, shifts by known counts, the range of a byte.
TEST(CKernels, upper_halves_shifts_and_saturation) {
  std::vector<loop::Kernel> kernels;
  auto number = [](int64_t value) { return loop::const_int(DType::kI32, value); };
  for (int shift : {0, 1, 31}) {
    kernels.push_back(elementwise_kernel("shifts", DType::kI32, DType::kI32, 1, [=](const auto& x) {
      loop::Expr up = loop::binary(BinaryOp::k_shl, x[0], number(shift));
      return loop::binary(BinaryOp::k_xor, up, loop::binary(BinaryOp::k_shr, x[1], number(shift)));
    }));
    kernels.push_back(elementwise_kernel("product", DType::kI32, DType::kI32, 1, [=](const auto& x) {
      loop::Expr product = loop::cast(DType::kI64, x[0]) * loop::cast(DType::kI64, x[1]);
      return loop::cast(DType::kI32, loop::binary(BinaryOp::k_shr, product, loop::const_index(32 + shift)));
    }));
  }
  for (auto [low, high] : {std::pair<int64_t, int64_t>{-128, 127}, {0, 255}, {0, 1}, {-2, 1}, {-127, 127}})
    for (bool in_variable : {false, true}) {
      KernelMaker m("saturation");
      loop::Buffer x = m.global(DType::kI32, 240), y = m.output(DType::kI32, 240);
      loop::Var i = m.var(), element = m.var({DType::kI32, 1}), bound = m.var({DType::kI32, 1});
      loop::Expr above = loop::binary(BinaryOp::k_max, loop::var_ref(element), number(low));
      loop::Expr within =
          loop::binary(BinaryOp::k_min, in_variable ? loop::var_ref(bound) : above, number(high));
      std::vector<loop::Stmt> body;
      body.push_back(loop::let(element, loop::load(x, loop::var_ref(i))));
      if (in_variable) body.push_back(loop::let(bound, above));
      body.push_back(loop::store(y, loop::var_ref(i), within));
      m.kernel.body = loop::for_loop(i, loop::const_index(240), loop::AxisKind::kSerial, loop::block(body));
      kernels.push_back(m.kernel);
    }
  expect_same(kernels);
}

// Vectors of MVE, here as the loops that other machines have: by operation, in variables, in accumulators, and where
// single lanes are wanted.
TEST(CKernels, vectors_for_mve) {
  std::vector<loop::Kernel> kernels;
  using Values = std::vector<loop::Expr>;
  auto add = [&](DType from, DType to, int lanes, const std::function<loop::Expr(const Values&)>& f) {
    kernels.push_back(elementwise_kernel("vector", from, to, lanes, f));
  };
  auto splat = [](DType dtype, int64_t value) { return loop::const_int(dtype, value, 4); };
  constexpr DType kWord = DType::kI32;
  for (BinaryOp op : {BinaryOp::k_add, BinaryOp::k_sub, BinaryOp::k_mul, BinaryOp::k_max, BinaryOp::k_min})
    add(kWord, kWord, 4,
        [=](const Values& x) { return loop::binary(op, x[0], loop::binary(op, x[1], x[2])); });
  add(kWord, kWord, 4, [](const Values& x) { return loop::mul_acc(x[0], x[1], x[2]); });
  for (int64_t count : {0, 1, 31}) {
    for (BinaryOp op : {BinaryOp::k_shl, BinaryOp::k_shr})
      add(kWord, kWord, 4, [=](const Values& x) { return loop::binary(op, x[0], splat(kWord, count)); });
    add(kWord, kWord, 4, [=](const Values& x) {
      loop::Expr product = loop::cast(DType::kI64, x[0]) * loop::cast(DType::kI64, x[1]);
      return loop::cast(kWord, loop::binary(BinaryOp::k_shr, product, splat(DType::kI64, 32 + count)));
    });
  }
  for (DType byte : {DType::kI8, DType::kU8}) {
    add(byte, kWord, 4, [](const Values& x) { return loop::cast(kWord, x[0]) - loop::cast(kWord, x[1]); });
    add(byte, byte, 4,
        [=](const Values& x) { return loop::cast(byte, loop::cast(kWord, x[0]) * loop::cast(kWord, x[1])); });
    add(kWord, kWord, 4, [=](const Values& x) { return loop::cast(kWord, loop::cast(byte, x[0])); });
    add(kWord, byte, 4, [=](const Values& x) {
      loop::Expr above = loop::binary(BinaryOp::k_max, x[0], splat(kWord, byte == DType::kI8 ? -128 : 0));
      return loop::cast(byte,
                        loop::binary(BinaryOp::k_min, above, splat(kWord, byte == DType::kI8 ? 127 : 255)));
    });
    add(byte, byte, 16, [](const Values& x) { return x[1]; });
    KernelMaker m("sums");
    loop::Buffer x = m.global(byte, 240), y = m.global(byte, 240), out = m.output(kWord, 15);
    loop::Var i = m.var(), v = m.var({byte, 16});
    loop::Expr index = loop::ramp(loop::var_ref(i) * loop::const_index(16), 1, 16);
    auto words = [](const loop::Expr& e) { return loop::cast(kWord, e); };
    loop::Expr sum =
        loop::reduce_lanes(BinaryOp::k_add, words(loop::var_ref(v)) * words(loop::load(y, index, 16)));
    m.kernel.body =
        loop::for_loop(i, loop::const_index(15), loop::AxisKind::kSerial,
                       loop::block({loop::let(v, loop::load(x, index, 16)),
                                    loop::store(out, loop::var_ref(i), loop::const_int(kWord, 7) + sum)}));
    kernels.push_back(m.kernel);
  }
  for (bool by_lane : {false, true}) {
    KernelMaker m("variables");
    loop::Buffer x = m.global(kWord, 240), y = m.output(kWord, 240);
    loop::Buffer sums = m.local(kWord, 8, loop::Scope::kRegister);
    loop::Var i = m.var(), first = m.var({kWord, 4}), again = m.var({kWord, 4});
    loop::Expr index = loop::ramp(loop::var_ref(i) * loop::const_index(4), 1, 4);
    loop::Expr low = loop::ramp(loop::const_index(0), 1, 4), high = loop::ramp(loop::const_index(4), 1, 4);
    loop::Expr result = loop::load(sums, low, 4) - loop::load(sums, high, 4);
    if (by_lane)
      result = loop::select(loop::binary(BinaryOp::k_lt, loop::var_ref(first), splat(kWord, 5)), result,
                            loop::var_ref(again));
    m.kernel.body = loop::for_loop(
        i, loop::const_index(60), loop::AxisKind::kSerial,
        loop::block({loop::alloc(sums), loop::let(first, loop::load(x, index, 4)),
                     loop::let(again, loop::load(x, index, 4)), loop::store(sums, low, loop::var_ref(first)),
                     loop::store(sums, high, splat(kWord, 3)),
                     loop::store(sums, high,
                                 loop::mul_acc(loop::load(sums, low, 4), loop::var_ref(again),
                                               loop::load(sums, high, 4))),
                     loop::store(y, index, result)}));
    kernels.push_back(m.kernel);
  }
  if (std::string missing = missing_c_compiler(); !missing.empty()) GTEST_SKIP() << missing;
  for (const std::string& host : host_targets()) expect_same(kernels, host, "-O1", "cortex-m55");
}

// Words of which a processor without products of halves loads the bytes, next to those that it loads whole; upper halves
// of products.
TEST(CKernels, words_for_small_processors) {
  std::vector<loop::Kernel> kernels;
  for (DType word : {DType::kI32, DType::kU32})
    for (bool is_whole : {false, true}) {
      KernelMaker m("words");
      loop::Buffer x = m.global(DType::kI8, 240), y = m.global(word, 60), z = m.output(DType::kI32, 60);
      loop::Var i = m.var(), a = m.var({word, 1});
      loop::Expr at = loop::var_ref(i);
      loop::Expr bytes = loop::load(x, loop::ramp(at * loop::const_index(4), 1, 4), 4);
      loop::Expr sum = is_whole ? loop::cast(DType::kI32, loop::var_ref(a)) : loop::const_int(DType::kI32, 5);
      loop::Expr products = loop::dot(loop::var_ref(a), loop::load(y, at), sum);
      loop::Expr half = loop::binary(
          BinaryOp::k_shr, loop::cast(DType::kI64, products) * loop::const_int(DType::kI64, 1234567891),
          loop::const_index(35));
      std::vector<loop::Stmt> body;
      body.push_back(loop::let(a, loop::bitcast({word, 1}, loop::bitcast({DType::kU32, 1}, bytes))));
      body.push_back(loop::store(z, at, loop::cast(DType::kI32, half)));
      m.kernel.body = loop::for_loop(i, loop::const_index(60), loop::AxisKind::kSerial, loop::block(body));
      kernels.push_back(m.kernel);
    }
  if (std::string missing = missing_c_compiler(); !missing.empty()) GTEST_SKIP() << missing;
  for (const std::string& host : host_targets())
    for (const char* target : {"cortex-m0plus", "cortex-m4"}) expect_same(kernels, host, "-O1", target);
}

// Words from bytes, and bytes from words, of vectors and of scalars.
TEST(CKernels, bitcasts_of_other_widths) {
  std::vector<loop::Kernel> kernels;
  for (DType wide : {DType::kF32, DType::kI32, DType::kU64, DType::kU16})
    for (int lanes : {1, 4}) {
      int parts = element_size(wide);
      KernelMaker join("join");
      loop::Buffer x = join.global(DType::kU8, 240), y = join.output(wide, 240 / parts);
      loop::Var i = join.var();
      loop::Expr first = loop::var_ref(i) * loop::const_index(lanes);
      loop::Expr bytes =
          loop::load(x, loop::ramp(first * loop::const_index(parts), 1, lanes * parts), lanes * parts);
      join.kernel.body =
          loop::for_loop(i, loop::const_index(240 / parts / lanes), loop::AxisKind::kSerial,
                         loop::store(y, lanes_from(first, lanes), loop::bitcast({wide, lanes}, bytes)));
      kernels.push_back(join.kernel);
      KernelMaker split("split");
      loop::Buffer from = split.global(wide, 240 / parts), to = split.output(DType::kI8, 240);
      loop::Var j = split.var();
      loop::Expr word =
          loop::load(from, lanes_from(loop::var_ref(j) * loop::const_index(lanes), lanes), lanes);
      loop::Expr target = loop::ramp(loop::var_ref(j) * loop::const_index(lanes * parts), 1, lanes * parts);
      split.kernel.body =
          loop::for_loop(j, loop::const_index(240 / parts / lanes), loop::AxisKind::kSerial,
                         loop::store(to, target, loop::bitcast({DType::kI8, lanes * parts}, word)));
      kernels.push_back(split.kernel);
    }
  expect_same(kernels);
}

// Lanes that read what other lanes write: the vector is read before it is written.
TEST(CKernels, vectors_are_read_before_they_are_written) {
  std::vector<loop::Kernel> kernels;
  for (int64_t shift : {-1, 1, 3}) {
    KernelMaker m("shift");
    loop::Buffer x = m.global(DType::kI32, 64, loop::Access::kReadWrite);
    loop::Var i = m.var();
    loop::Expr base = loop::var_ref(i) * loop::const_index(8) + loop::const_index(8);
    loop::Expr value = loop::load(x, loop::ramp(base + loop::const_index(shift), 1, 8), 8);
    loop::Expr mask = loop::binary(BinaryOp::k_gt, value, loop::const_int(DType::kI32, 3, 8));
    m.kernel.body =
        loop::for_loop(i, loop::const_index(6), loop::AxisKind::kSerial,
                       loop::store(x, loop::ramp(base, 1, 8), value, shift == 3 ? mask : nullptr));
    kernels.push_back(m.kernel);
  }
  expect_same(kernels);
}

// As lowering and the passes write them.
TEST(CKernels, random_kernels) {
  std::vector<loop::Kernel> kernels;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    loop::Kernel kernel = loop::random_kernel(seed);
    kernel.name += std::to_string(seed);
    loop::simplify(kernel);
    loop::vectorize_loops(kernel);
    loop::unroll_loops(kernel);
    loop::simplify(kernel);
    kernels.push_back(std::move(kernel));
  }
  expect_same(kernels);
}

// One text whatever was printed before it.
TEST(CKernels, text_is_deterministic) {
  std::vector<loop::Kernel> kernels{loop::random_kernel(3), loop::random_kernel(4)};
  for (loop::Kernel& kernel : kernels) {
    loop::vectorize_loops(kernel);
    loop::unroll_loops(kernel);
  }
  auto first = codegen::print_kernels(kernels, *find_target("x86-64"), {{"a", "", {}}, {"b", "", {true}}});
  auto second = codegen::print_kernels(kernels, *find_target("x86-64"), {{"a", "", {}}, {"b", "", {true}}});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->prelude, second->prelude);
  for (size_t k = 0; k < 2; ++k) EXPECT_EQ(first->kernels[k].text, second->kernels[k].text);
}

}  // namespace
}  // namespace quernel::test
