#include "loop/interval.h"

namespace quernel::loop {

Interval Interval::clamp(__int128 lo, __int128 hi) {
  auto end = [](__int128 v) {
    return static_cast<int64_t>(v > kUnknown ? kUnknown : v < -kUnknown ? -kUnknown : v);
  };
  return {end(lo), end(hi)};
}

Interval operator+(Interval a, Interval b) {
  constexpr int64_t kUnknown = Interval::kUnknown;
  Interval sum = Interval::clamp(static_cast<__int128>(a.lo) + b.lo, static_cast<__int128>(a.hi) + b.hi);
  if (a.lo <= -kUnknown || b.lo <= -kUnknown) sum.lo = -kUnknown;  // unknown plus known is unknown
  if (a.hi >= kUnknown || b.hi >= kUnknown) sum.hi = kUnknown;
  return sum;
}

Interval operator*(Interval a, Interval b) {
  __int128 corners[] = {static_cast<__int128>(a.lo) * b.lo, static_cast<__int128>(a.lo) * b.hi,
                        static_cast<__int128>(a.hi) * b.lo, static_cast<__int128>(a.hi) * b.hi};
  __int128 lo = corners[0], hi = corners[0];
  for (__int128 corner : corners) {
    lo = corner < lo ? corner : lo;
    hi = corner > hi ? corner : hi;
  }
  return Interval::clamp(lo, hi);
}

Interval operator*(Interval a, int64_t factor) { return a * Interval::of(factor); }

Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval floor_divide(Interval a, int64_t divisor) {
  if (!a.finite()) return {};
  return {floor_divide(a.lo, divisor), floor_divide(a.hi, divisor)};
}

Interval truncate_divide(Interval a, int64_t divisor) {
  if (!a.finite()) return {};
  return {a.lo / divisor, a.hi / divisor};
}

Interval floor_remainder(Interval a, int64_t divisor) {
  if (a.within(0, divisor - 1)) return a;
  return {0, divisor - 1};
}

Interval truncate_remainder(Interval a, int64_t divisor) {
  if (a.within(1 - divisor, divisor - 1)) return a;
  return {a.lo < 0 ? 1 - divisor : 0, a.hi > 0 ? divisor - 1 : 0};
}

}  // namespace quernel::loop
