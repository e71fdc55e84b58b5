#include "core/signature.h"

#include <string.h>

namespace quernel::runtime {

void SignatureReader::skip_blanks() {
  while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r') ++at_;
}

bool SignatureReader::accept(char c) {
  skip_blanks();
  if (*at_ != c) return false;
  ++at_;
  return true;
}

bool SignatureReader::accept_dtype(qnl_dtype* dtype) {
  skip_blanks();
  uint32_t length = 0;
  while ((at_[length] >= 'a' && at_[length] <= 'z') || (at_[length] >= '0' && at_[length] <= '9')) ++length;
  for (uint32_t d = 0; d < QNL_DTYPE_COUNT; ++d) {
    const char* name = qnl_dtype_name(static_cast<qnl_dtype>(d));
    if (strlen(name) != length || memcmp(name, at_, length) != 0) continue;
    *dtype = static_cast<qnl_dtype>(d);
    at_ += length;
    return true;
  }
  return false;
}

bool SignatureReader::next(SignatureType* type) {
  bool separated = begun_ && accept(',');
  if (!separated && !results_ && accept('-')) {
    if (*at_ != '>') return false;
    ++at_;
    results_ = separated = true;
  }
  skip_blanks();
  if (begun_ && !separated) {
    complete_ = results_ && *at_ == '\0';
    return false;
  }
  begun_ = true;
  *type = {};
  type->is_result = results_;
  if (!accept_dtype(&type->dtype) || !accept('[')) return false;
  if (accept(']')) return true;
  do {
    if (!accept('?') || type->rank == QNL_MAX_RANK) return false;
    type->rank += 1;
  } while (accept(','));
  return accept(']');
}

bool same_signature(const char* a, const char* b) {
  SignatureReader first(a), second(b);
  SignatureType x, y;
  for (;;) {
    bool more = first.next(&x), also = second.next(&y);
    if (more != also) return false;
    if (!more) return first.complete() && second.complete();
    if (x.dtype != y.dtype || x.rank != y.rank || x.is_result != y.is_result) return false;
  }
}

}  // namespace quernel::runtime
