// Accesses: strides, guards and predicates of every kind, on memory that ends at an unmapped page, so that
// reading or writing one element too much is a crash; unaligned pointers; in-place bindings.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "host_targets.h"
#include "kernel_maker.h"
#include "run_image.h"

namespace quernel::test {
namespace {

using namespace loop;

// `bytes` of memory between two pages that may not be touched, at its end or, shifted by `slack`, not
// aligned.
class FencedMemory {
 public:
  explicit FencedMemory(size_t bytes, bool at_end = true) {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t inner = (bytes + page - 1) / page * page + page;
    size_ = inner + 2 * page;
    base_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + inner, page, PROT_NONE);
    data_ = at_end ? base_ + page + inner - bytes : base_ + page;
  }
  FencedMemory(const FencedMemory&) = delete;
  ~FencedMemory() { munmap(base_, size_); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  char* base_;
  char* data_;
  size_t size_;
};

void for_each_target(const Kernel& kernel,
                     const std::function<void(const std::string&, const MappedImage&)>& run) {
  for (const std::string& target : host_targets()) {
    codegen::Image image = compile_or_fail({kernel}, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    run(target, mapped);
  }
}

Expr index_times(const Var& i, int64_t factor, int64_t offset = 0) {
  return var_ref(i) * const_index(factor) + const_index(offset);
}

class Strided : public testing::TestWithParam<std::tuple<int64_t, DType>> {};

// out[l] = in[base + stride * l], with the whole of `in` touched and nothing else.
TEST_P(Strided, loads_stay_inside) {
  auto [stride, dtype] = GetParam();
  int element = element_size(dtype);
  for (int lanes : {4, 16, 32}) {
    int64_t span = std::abs(stride) * (lanes - 1) + 1;
    KernelMaker m("strided");
    Buffer in = m.global(dtype, span), out = m.output(dtype, lanes);
    m.kernel.body = store(out, ramp(const_index(0), 1, lanes),
                          load(in, ramp(const_index(stride < 0 ? span - 1 : 0), stride, lanes), lanes));
    for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
      for (bool at_end : {true, false}) {
        FencedMemory x(static_cast<size_t>(span * element), at_end),
            y(static_cast<size_t>(lanes * element), at_end);
        for (int64_t i = 0; i < span * element; ++i)
          x.as<uint8_t>()[i] = static_cast<uint8_t>(dtype == DType::kBool ? i & 1 : i * 37 + 11);
        image.call(0, {x.as<void>(), y.as<void>()});
        for (int l = 0; l < lanes; ++l) {
          int64_t source = stride < 0 ? span - 1 + stride * l : stride * l;
          EXPECT_EQ(std::memcmp(x.as<char>() + source * element, y.as<char>() + l * element,
                                static_cast<size_t>(element)),
                    0)
              << target << " stride " << stride << " lanes " << lanes << " lane " << l;
        }
      }
    });
  }
}
INSTANTIATE_TEST_SUITE_P(LoadStore, Strided,
                         testing::Combine(testing::Values(int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{3},
                                                          int64_t{4}, int64_t{7}, int64_t{-2}),
                                          testing::Values(DType::kF32, DType::kI8, DType::kI16, DType::kF64,
                                                          DType::kBool)));

enum class Form { kContiguous, kReversed, kStride2, kStride5, kGathered, kBroadcast };

class Guarded : public testing::TestWithParam<std::tuple<Form, bool, DType>> {};

Expr index_of(Form form, const Buffer& indices, const Var& i, int lanes) {
  Expr base = index_times(i, lanes);
  switch (form) {
    case Form::kContiguous:
      return ramp(base, 1, lanes);
    case Form::kReversed:
      return ramp(base + const_index(lanes - 1), -1, lanes);
    case Form::kStride2:
      return ramp(base * const_index(2), 2, lanes);
    case Form::kStride5:
      return ramp(base * const_index(5), 5, lanes);
    case Form::kGathered:
      return cast(DType::kI64, load(indices, ramp(base, 1, lanes), lanes));
    case Form::kBroadcast:
      return broadcast(base, lanes);
  }
  return nullptr;
}

// Elements at or past `limit` do not exist: their lanes get -1 and are not stored.
TEST_P(Guarded, touches_only_what_the_guard_allows) {
  auto [form, uniform, dtype] = GetParam();
  constexpr int kLanes = 16, kSteps = 3, kCount = kLanes * kSteps;
  KernelMaker m("guarded");
  Buffer in = m.global(dtype, 1000), indices = m.global(DType::kI32, kCount), out = m.output(dtype, kCount),
         kept = m.output(dtype, 1000);
  Expr limit = m.symbol("limit");
  Var i = m.var();
  Expr index = index_of(form, indices, i, kLanes);
  Expr inside = uniform ? binary(BinaryOp::k_lt, index_times(i, kLanes), limit)
                        : binary(BinaryOp::k_lt, index, broadcast(limit, kLanes));
  Expr minus_one = is_float(dtype) ? const_float(dtype, -1, kLanes) : const_int(dtype, -1, kLanes);
  // A uniform guard is about the whole vector: let its limit count vectors.
  Expr value = load_guarded(in, index, uniform ? broadcast(inside, kLanes) : inside, minus_one);
  m.kernel.body = for_loop(i, const_index(kSteps), AxisKind::kSerial,
                           block({store(out, ramp(index_times(i, kLanes), 1, kLanes), value),
                                  store(kept, index, value, uniform ? broadcast(inside, kLanes) : inside)}));
  int element = element_size(dtype);
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    for (int64_t wanted : {0, 1, 5, 16, 17, 31, 48, 200}) {
      std::vector<int32_t> permutation(kCount);
      for (int k = 0; k < kCount; ++k) permutation[static_cast<size_t>(k)] = (k * 29 + 3) % kCount;
      auto place = [&](int k) -> int64_t {
        switch (form) {
          case Form::kContiguous:
            return k;
          case Form::kReversed:
            return k / kLanes * kLanes + kLanes - 1 - k % kLanes;
          case Form::kStride2:
            return 2 * k;
          case Form::kStride5:
            return 5 * k;
          case Form::kGathered:
            return permutation[static_cast<size_t>(k)];
          case Form::kBroadcast:
            return k / kLanes * kLanes;
        }
        return 0;
      };
      // Elements that exist: below the limit, or what the vectors that start below it touch.
      auto allowed = [&](int k) { return uniform ? k / kLanes * kLanes < wanted : place(k) < wanted; };
      int64_t exists = 0;
      for (int k = 0; k < kCount; ++k)
        if (allowed(k)) exists = std::max(exists, place(k) + 1);
      FencedMemory x(static_cast<size_t>(exists * element)), z(static_cast<size_t>(exists * element)),
          y(static_cast<size_t>(kCount * element));
      for (int64_t b = 0; b < exists * element; ++b) x.as<uint8_t>()[b] = static_cast<uint8_t>(b * 13 + 5);
      std::memset(z.as<char>(), 0x77, static_cast<size_t>(exists * element));
      image.call(0, {x.as<void>(), permutation.data(), y.as<void>(), z.as<void>()}, 1, {wanted});
      std::vector<bool> stored(static_cast<size_t>(exists));
      for (int k = 0; k < kCount; ++k) {
        uint64_t got = 0, source = 0, copy = 0;
        std::memcpy(&got, y.as<char>() + k * element, static_cast<size_t>(element));
        if (allowed(k)) {
          std::memcpy(&source, x.as<char>() + place(k) * element, static_cast<size_t>(element));
          std::memcpy(&copy, z.as<char>() + place(k) * element, static_cast<size_t>(element));
          stored[static_cast<size_t>(place(k))] = true;
          EXPECT_EQ(copy, source) << target << " limit " << wanted << " lane " << k;
        } else {
          source = is_float(dtype) ? 0xbf800000u
                   : element == 8  ? ~uint64_t{0}
                                   : (uint64_t{1} << (8 * element)) - 1;
        }
        EXPECT_EQ(got, source) << target << " limit " << wanted << " lane " << k;
      }
      for (int64_t k = 0; k < exists * element; ++k)
        EXPECT_TRUE(stored[static_cast<size_t>(k / element)] || z.as<uint8_t>()[k] == 0x77)
            << target << " limit " << wanted << " byte " << k;
    }
  });
}
INSTANTIATE_TEST_SUITE_P(LoadStore, Guarded,
                         testing::Combine(testing::Values(Form::kContiguous, Form::kReversed, Form::kStride2,
                                                          Form::kStride5, Form::kGathered, Form::kBroadcast),
                                          testing::Bool(),
                                          testing::Values(DType::kF32, DType::kI8, DType::kI64)));

// An empty buffer, whose pointer is null, yields the alternative.
TEST(LoadStore, guarded_load_of_nothing) {
  for (int lanes : {1, 16})
    for (int64_t size : {0, 4}) {
      KernelMaker m("nothing");
      Buffer in = m.global(DType::kF32, size), out = m.output(DType::kF32, lanes);
      Expr never = binary(BinaryOp::k_lt, const_index(0), m.symbol("n"));
      Expr value =
          load_guarded(in, lanes_from(const_index(0), lanes), lanes == 1 ? never : broadcast(never, lanes),
                       const_float(DType::kF32, 7, lanes));
      m.kernel.body = store(out, lanes_from(const_index(0), lanes), value);
      for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
        std::vector<float> y(static_cast<size_t>(lanes), 0);
        image.call(0, {nullptr, y.data()}, 1, {0});
        for (float v : y) EXPECT_EQ(v, 7) << target;
      });
    }
}

// The value of a predicated store may itself read out of bounds where the predicate is off.
TEST(LoadStore, predicated_store_shields_its_value) {
  for (int lanes : {1, 16}) {
    KernelMaker m("copy");
    Buffer in = m.global(DType::kF32, 1000), out = m.output(DType::kF32, 1000);
    Expr n = m.symbol("n");
    Var i = m.var();
    Expr index = lanes_from(index_times(i, lanes), lanes);
    Expr inside = binary(BinaryOp::k_lt, index, lanes == 1 ? n : broadcast(n, lanes));
    m.kernel.body = for_loop(i, const_index(64 / lanes), AxisKind::kSerial,
                             store(out, index, load(in, index, lanes), inside));
    for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
      for (int64_t count : {0, 1, 15, 16, 21, 64}) {
        FencedMemory x(static_cast<size_t>(count) * 4), y(static_cast<size_t>(count) * 4);
        std::iota(x.as<float>(), x.as<float>() + count, 1.0f);
        image.call(0, {x.as<void>(), y.as<void>()}, 1, {count});
        EXPECT_EQ(std::memcmp(x.as<char>(), y.as<char>(), static_cast<size_t>(count) * 4), 0)
            << target << " " << count;
      }
    });
  }
}

// Stores with conflicting lanes: the last lane stays.
TEST(LoadStore, later_lanes_win) {
  KernelMaker m("conflict");
  Buffer in = m.global(DType::kI32, 16), where = m.global(DType::kI32, 16), out = m.output(DType::kI32, 4);
  Expr all = ramp(const_index(0), 1, 16);
  m.kernel.body = store(out, cast(DType::kI64, load(where, all, 16)), load(in, all, 16));
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    std::vector<int32_t> x(16), w(16), y(4);
    std::iota(x.begin(), x.end(), 100);
    for (size_t k = 0; k < 16; ++k) w[k] = static_cast<int32_t>(k % 4);
    image.call(0, {x.data(), w.data(), y.data()});
    EXPECT_EQ(y, (std::vector<int32_t>{112, 113, 114, 115})) << target;
  });
}

// Pointers have their element's alignment and no more; an output may be its input.
TEST(LoadStore, unaligned_and_in_place) {
  Kernel kernel =
      elementwise("twice", {DType::kF32}, DType::kF32, 256, 16, [](const auto& in) { return in[0] + in[0]; });
  for_each_target(kernel, [&](const std::string& target, const MappedImage& image) {
    std::vector<float> x(300), y(300);
    std::iota(x.begin(), x.end(), 0.0f);
    image.call(0, {x.data() + 1, y.data() + 3});
    for (size_t k = 0; k < 256; ++k) EXPECT_EQ(y[k + 3], 2 * x[k + 1]) << target;
    image.call(0, {x.data() + 1, x.data() + 1});
    for (size_t k = 0; k < 256; ++k) EXPECT_EQ(x[k + 1], y[k + 3]) << target;
  });
}

}  // namespace
}  // namespace quernel::test
