// Which Vulkan drivers and GPUs there are: the files that the loader library would look at, by the times of
// their last change, and the devices that the kernel shows.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "platform/library.h"

namespace quernel::platform {
namespace {

constexpr size_t kPathBytes = 4096;

// A driver's manifest is some hundred bytes.
constexpr size_t kTextBytes = 16384;

struct Pieces {
  void (*add)(void* user, const void* data, uint64_t bytes);
  void* user;

  void text(const char* text) const { add(user, text, strlen(text) + 1); }
  // Installing a file sets the time of its last change, whatever else it keeps.
  void file(const char* path) const {
    struct stat found;
    int64_t stamp[4] = {};
    if (stat(path, &found) == 0) {
      stamp[0] = found.st_size;
      stamp[1] = found.st_ctim.tv_sec;
      stamp[2] = found.st_ctim.tv_nsec;
      stamp[3] = 1 + (access(path, R_OK) == 0);
    }
    text(path);
    add(user, stamp, sizeof stamp);
  }
};

// The file's text, cut to fit; "" where there is none.
void read_text(const char* path, char* text, size_t bytes) {
  size_t count = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 0; fd >= 0 && (got = read(fd, text + count, bytes - 1 - count)) > 0;)
    count += static_cast<size_t>(got);
  if (fd >= 0) close(fd);
  text[count] = '\0';
}

void add_contents(const Pieces& pieces, const char* path) {
  char text[kTextBytes];
  read_text(path, text, sizeof text);
  pieces.text(text);
}

// Joins up to three names with '/' between them; one that begins with '/' starts anew.
bool join(char (&path)[kPathBytes], const char* a, const char* b, const char* c = nullptr) {
  if (b[0] == '/') a = nullptr;
  int length = snprintf(path, sizeof path, "%s%s%s%s%s", a == nullptr ? "" : a, a == nullptr ? "" : "/", b,
                        c == nullptr ? "" : "/", c == nullptr ? "" : c);
  return length > 0 && static_cast<size_t>(length) < sizeof path;
}

// A manifest and the library that it names; one without a folder in its name is found through ld.so.cache.
void add_manifest(const Pieces& pieces, const char* path) {
  pieces.file(path);
  char text[kTextBytes];
  read_text(path, text, sizeof text);
  char* name = strstr(text, "\"library_path\"");
  name = name == nullptr ? nullptr : strchr(name + strlen("\"library_path\""), '"');
  char* end = name == nullptr ? nullptr : strchr(++name, '"');
  if (end == nullptr) return;
  *end = '\0';
  if (strchr(name, '/') == nullptr) return;
  char folder[kPathBytes], library[kPathBytes];
  snprintf(folder, sizeof folder, "%s", path);
  char* last = strrchr(folder, '/');
  if (last == nullptr) return;
  *last = '\0';
  if (join(library, folder, name)) pieces.file(library);
}

bool ends_in_json(const char* name) {
  size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

// Calls with each entry of the folder, in the order of their names.
template <class Visit>
bool list_folder(const char* path, const Visit& visit) {
  dirent** entries = nullptr;
  int count = scandir(path, &entries, nullptr, alphasort);
  for (int i = 0; i < count; ++i) {
    if (entries[i]->d_name[0] != '.') visit(entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  return count >= 0;
}

// Of manifests; or one itself, as the loader's variables may name either.
void add_manifests(const Pieces& pieces, const char* path) {
  bool is_folder = list_folder(path, [&](const char* name) {
    char manifest[kPathBytes];
    if (ends_in_json(name) && join(manifest, path, name)) add_manifest(pieces, manifest);
  });
  if (!is_folder) add_manifest(pieces, path);
}

// Calls with each part of a list that ':' separates.
template <class Visit>
void split(const char* list, const Visit& visit) {
  while (list != nullptr && *list != '\0') {
    const char* end = strchr(list, ':');
    size_t length = end == nullptr ? strlen(list) : static_cast<size_t>(end - list);
    char part[kPathBytes];
    if (length > 0 && length < sizeof part) {
      memcpy(part, list, length);
      part[length] = '\0';
      visit(static_cast<const char*>(part));
    }
    list += length + (end != nullptr);
  }
}

const char* variable(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value == nullptr || value[0] == '\0' ? otherwise : value;
}

// Drivers, and layers that choose among them, below folders where the loader looks.
void add_search_path(const Pieces& pieces, const char* folders) {
  split(folders, [&](const char* folder) {
    for (const char* below : {"vulkan/icd.d", "vulkan/implicit_layer.d"}) {
      char path[kPathBytes];
      if (join(path, folder, below)) add_manifests(pieces, path);
    }
  });
}

void add_home(const Pieces& pieces, const char* name, const char* below) {
  char path[kPathBytes];
  const char* folder = getenv(name);
  if (folder != nullptr)
    add_search_path(pieces, folder);
  else if (join(path, variable("HOME", ""), below))
    add_search_path(pieces, path);
}

void add_gpus(const Pieces& pieces) {
  for (const char* folder : {"/dev/dri", "/proc/driver/nvidia/gpus"})
    list_folder(folder, [&](const char* name) {
      char path[kPathBytes];
      pieces.text(name);
      if (join(path, folder, name)) pieces.text(access(path, R_OK | W_OK) == 0 ? "usable" : "");
      // Vendor, device, its place on the bus and the kernel's driver.
      if (join(path, "/sys/class/drm", name, "device/uevent")) add_contents(pieces, path);
    });
}

}  // namespace

void describe_drivers(void (*add)(void* user, const void* data, uint64_t bytes), void* user) {
  Pieces pieces = {add, user};
  // What chooses among drivers and devices, or where libraries are.
  for (const char* name :
       {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT",
        "VK_LOADER_DRIVERS_DISABLE", "VK_LOADER_DEVICE_SELECT", "VK_INSTANCE_LAYERS", "VK_LAYER_PATH",
        "VK_LOADER_LAYERS_ENABLE", "VK_LOADER_LAYERS_DISABLE", "MESA_VK_DEVICE_SELECT",
        "MESA_VK_DEVICE_SELECT_FORCE_DEFAULT_DEVICE", "DRI_PRIME", "NVIDIA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH"})
    pieces.text(variable(name, ""));
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"})
    split(getenv(name), [&](const char* path) { add_manifests(pieces, path); });
  add_home(pieces, "XDG_CONFIG_HOME", ".config");
  add_search_path(pieces, variable("XDG_CONFIG_DIRS", "/etc/xdg"));
  add_search_path(pieces, "/etc:/usr/local/etc");
  add_home(pieces, "XDG_DATA_HOME", ".local/share");
  add_search_path(pieces, variable("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
  pieces.file("/etc/ld.so.cache");  // made anew when libraries are installed
  add_contents(pieces, "/proc/sys/kernel/osrelease");
  add_contents(pieces, "/proc/driver/nvidia/version");
  add_gpus(pieces);
}

}  // namespace quernel::platform
