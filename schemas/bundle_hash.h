/* The 64-bit hash of bundles: standalone C99, not cryptographic. A change inside one aligned 8-byte word,
 * such as a single bit flip, always changes the hash. Other changes do so with probability 1 - 2^-64. */
#ifndef QUERNEL_SCHEMAS_BUNDLE_HASH_H_
#define QUERNEL_SCHEMAS_BUNDLE_HASH_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Four lanes of XXH64's round (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). The round is a bijection of
 * the lane for a given word, and of the word for a given lane. XXH64's own finish uses each lane twice, which
 * loses the certainty. Here each lane, and then each remaining word, enters once through that same round. */
typedef struct qnl_hash_state {
  uint64_t lanes[4];
  uint64_t total;           /* bytes so far */
  unsigned char buffer[32]; /* the last total % 32 bytes */
} qnl_hash_state;

#define QNL_HASH_P1 UINT64_C(0x9E3779B185EBCA87)
#define QNL_HASH_P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define QNL_HASH_P3 UINT64_C(0x165667B19E3779F9)

static inline uint64_t qnl_hash_rotate(uint64_t v, int n) { return (v << n) | (v >> (64 - n)); }

static inline uint64_t qnl_hash_word(const unsigned char* p) {
  uint64_t v;
  memcpy(&v, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  return v;
}

#ifdef __OPTIMIZE_SIZE__
__attribute__((noinline))
#endif
static inline uint64_t
qnl_hash_round(uint64_t lane, uint64_t word) {
  return qnl_hash_rotate(lane + word * QNL_HASH_P2, 31) * QNL_HASH_P1;
}

static inline void qnl_hash_begin(qnl_hash_state* s) {
  memset(s, 0, sizeof *s);
  s->lanes[0] = QNL_HASH_P1 + QNL_HASH_P2;
  s->lanes[1] = QNL_HASH_P2;
  s->lanes[2] = 0;
  s->lanes[3] = 0 - QNL_HASH_P1;
}

static inline void qnl_hash_blocks(qnl_hash_state* s, const unsigned char* p, size_t blocks) {
#ifdef __OPTIMIZE_SIZE__
  size_t i;
  for (i = 0; i < 4 * blocks; ++i, p += 8)
    s->lanes[i % 4] = qnl_hash_round(s->lanes[i % 4], qnl_hash_word(p));
#else
  uint64_t a = s->lanes[0], b = s->lanes[1], c = s->lanes[2], d = s->lanes[3];
  for (; blocks != 0; --blocks, p += 32) {
    a = qnl_hash_round(a, qnl_hash_word(p));
    b = qnl_hash_round(b, qnl_hash_word(p + 8));
    c = qnl_hash_round(c, qnl_hash_word(p + 16));
    d = qnl_hash_round(d, qnl_hash_word(p + 24));
  }
  s->lanes[0] = a;
  s->lanes[1] = b;
  s->lanes[2] = c;
  s->lanes[3] = d;
#endif
}

static inline void qnl_hash_add(qnl_hash_state* s, const void* data, size_t bytes) {
  const unsigned char* p = (const unsigned char*)data;
  size_t held = (size_t)(s->total % 32);
  if (bytes == 0) return;
  s->total += bytes;
  if (held != 0) {
    size_t take = 32 - held < bytes ? 32 - held : bytes;
    memcpy(s->buffer + held, p, take);
    if (held + take < 32) return;
    qnl_hash_blocks(s, s->buffer, 1);
    p += take;
    bytes -= take;
  }
  qnl_hash_blocks(s, p, bytes / 32);
  if (bytes % 32 != 0) memcpy(s->buffer, p + bytes / 32 * 32, bytes % 32);
}

/* Returns the hash; the state must not be used afterwards. */
static inline uint64_t qnl_hash_end(qnl_hash_state* s) {
  size_t held = (size_t)(s->total % 32);
  uint64_t h = QNL_HASH_P3 + s->total;
  size_t i;
  for (i = 0; i < 4; ++i) h = qnl_hash_round(h, s->lanes[i]);
  memset(s->buffer + held, 0, 32 - held);
  for (i = 0; i < held; i += 8) h = qnl_hash_round(h, qnl_hash_word(s->buffer + i));
  h ^= h >> 33;
  h *= QNL_HASH_P2;
  h ^= h >> 29;
  h *= QNL_HASH_P3;
  h ^= h >> 32;
  return h;
}

static inline uint64_t qnl_hash(const void* data, size_t bytes) {
  qnl_hash_state s;
  const unsigned char* p = (const unsigned char*)data;
  qnl_hash_begin(&s);
  qnl_hash_blocks(&s, p, bytes / 32);
  if (bytes % 32 != 0) memcpy(s.buffer, p + bytes / 32 * 32, bytes % 32);
  s.total = bytes;
  return qnl_hash_end(&s);
}

#endif /* QUERNEL_SCHEMAS_BUNDLE_HASH_H_ */
