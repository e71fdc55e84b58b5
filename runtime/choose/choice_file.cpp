#include "choose/choice_file.h"

#include <string.h>

#include "platform/file.h"
#include "platform/platform.h"
#include "schemas/bundle_hash.h"

namespace quernel::runtime {
namespace {

constexpr uint64_t kMagic = 0x4543494f48434c51;  // "QLCHOICE"
constexpr uint32_t kVersion = 2;

// Little-endian like everything that the runtime stores.
struct File {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t reason = 0;
  uint64_t key = 0, system_key = 0;
  uint64_t vulkan_nanoseconds = 0, cpu_nanoseconds = 0;
  uint32_t test_count = 0;
  char text[sizeof qnl_choice::text] = {};
  uint64_t hash = 0;  // of all before it
};
static_assert(sizeof(File) == 64 + sizeof qnl_choice::text - 4 && sizeof(File) % 8 == 0);

bool is_reason(uint32_t reason) {
  return (reason >= QNL_CHOICE_FASTER && reason <= QNL_CHOICE_UNCHECKED) ||
         (reason >= QNL_CHOICE_NO_DEVICE && reason <= QNL_CHOICE_SOFTWARE);
}

}  // namespace

bool read_choice(const char* path, qnl_choice* choice) {
  platform::MappedFile mapped;
  const char* reason = "";
  if (platform::map_file(path, &mapped, &reason) != platform::MapResult::kOk) return false;
  File file;
  bool whole = mapped.bytes == sizeof file;
  if (whole) memcpy(&file, mapped.data, sizeof file);
  platform::unmap_file(mapped);
  if (!whole || file.magic != kMagic || file.version != kVersion ||
      file.hash != qnl_hash(&file, sizeof file - sizeof file.hash) || !is_reason(file.reason) ||
      file.text[sizeof file.text - 1] != '\0')
    return false;
  choice->reason = static_cast<qnl_choice_reason>(file.reason);
  choice->key = file.key;
  choice->system_key = file.system_key;
  choice->test_count = file.test_count;
  choice->vulkan_nanoseconds = file.vulkan_nanoseconds;
  choice->cpu_nanoseconds = file.cpu_nanoseconds;
  memcpy(choice->text, file.text, sizeof choice->text);
  return true;
}

void write_choice(const char* path, const qnl_choice& choice) {
  File file;
  file.reason = static_cast<uint32_t>(choice.reason);
  file.key = choice.key;
  file.system_key = choice.system_key;
  file.vulkan_nanoseconds = choice.vulkan_nanoseconds;
  file.cpu_nanoseconds = choice.cpu_nanoseconds;
  file.test_count = choice.test_count;
  strncpy(file.text, choice.text, sizeof file.text - 1);
  file.hash = qnl_hash(&file, sizeof file - sizeof file.hash);
  platform::Piece piece = {&file, sizeof file};
  (void)!platform::replace_file(path, &piece, 1);
}

}  // namespace quernel::runtime
