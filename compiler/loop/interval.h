// Intervals of i64 values, closed on both ends. An end beyond +-2^62 counts as unknown. A finite interval
// therefore also shows that computing the value did not wrap.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quernel::loop {

struct Interval {
  static constexpr int64_t kUnknown = int64_t{1} << 62;
  int64_t lo = -kUnknown, hi = kUnknown;

  static Interval of(int64_t value) { return {value, value}; }
  static Interval clamp(__int128 lo, __int128 hi);
  bool finite() const { return lo > -kUnknown && hi < kUnknown; }
  bool within(int64_t low, int64_t high) const { return lo >= low && hi <= high; }
};

Interval operator+(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
Interval operator*(Interval a, int64_t factor);
Interval hull(Interval a, Interval b);
Interval floor_divide(Interval a, int64_t divisor);     // divisor > 0
Interval truncate_divide(Interval a, int64_t divisor);  // divisor > 0
Interval floor_remainder(Interval a, int64_t divisor);
Interval truncate_remainder(Interval a, int64_t divisor);

inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t floor_remainder(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }

}  // namespace quernel::loop
