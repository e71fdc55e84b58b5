"""Where tests find a Vulkan device."""
import ctypes
import os
import pathlib


def vulkan_environment():
    """The environment in which --device vulkan is tested: Mesa's software driver, unless VK_ICD_FILENAMES names another.
    None where there is no Vulkan."""
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return None
    environment = dict(os.environ)
    drivers = sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd.*.json"))
    if "VK_ICD_FILENAMES" not in environment:
        if not drivers:
            return None
        environment["VK_ICD_FILENAMES"] = str(drivers[0])
    # Mesa's driver leaks 128 bytes when it is unloaded, which LeakSanitizer cannot tell from ours: the stack has no names by then.
    environment["ASAN_OPTIONS"] = ":".join(filter(None, [environment.get("ASAN_OPTIONS"), "detect_leaks=0"]))
    return environment
