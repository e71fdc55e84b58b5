// The generated header is compiled here without the runtime's accessors (schemas/bundle_tables.h), which read
// what is absent as empty and so are no oracle. They specialise its templates: in one program both need
// namespaces of their own.
#define flatbuffers flatbuffers_of_flatc
#define quernel quernel_of_flatc
#include "schemas/bundle_generated.h"
#undef flatbuffers
#undef quernel
#include "flatc_verifier.h"

namespace quernel::test {

bool flatc_verifies(const uint8_t* structure, uint64_t bytes) {
  flatbuffers_of_flatc::Verifier verifier(structure, bytes, 16, 1000000);
  return quernel_of_flatc::schema::VerifyBundleBuffer(verifier);
}

}  // namespace quernel::test
