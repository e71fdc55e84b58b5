// Device profiles by name: figures that makers, drivers and the standard publish. None has been measured by
// Quernel; what no source says is left out, and stays as the target has it. A figure that is worked out of
// others says how. Rates are peaks: a device reaches them on its best day.
// To be read again in the documents that are named, which could not be opened when this was written: Arm's
// multiply-adds a clock, Intel's lanes, threads and registers, the rates of local memory of AMD and NVIDIA,
// NVIDIA's registers, and the memory's rates with the Mali and the Radeon.
#include "targets/device_profile.h"

namespace quernel {

const std::vector<DevicePreset>& device_presets() {
  static const std::vector<DevicePreset> presets = {
      {"raspberry-pi-5", "VideoCore VII of Raspberry Pi 5",
       // Memory: Raspberry Pi's product brief, LPDDR4X-4267, 32 bits. Arithmetic: 800 MHz by the same brief,
       // times 12 QPUs of 4 lanes and 2 operations (py-videocore7, README). Workgroup memory, which lies in a
       // buffer of main memory: Mesa, src/broadcom/vulkan.
       "flops_per_second 76.8e9\n"
       "memory_bytes_per_second 17.1e9\n"
       "workgroup_memory 16384\n"
       "local_memory 0\n"},
      {"mali-g610-mc4", "Arm Mali-G610 with 4 cores at 1 GHz, LPDDR4X-4224 of 64 bits, as with RK3588",
       // Arithmetic: 64 multiply-adds per clock and core, Arm's datasheet of Mali GPUs. Arm's OpenCL
       // developer guides: 64 registers of 32 bits ("Avoid excessive register usage"); memory of workgroups
       // is main memory behind caches ("The Mali GPU OpenCL memory model"), how much drivers give is not
       // said. Memory: its width times its rate.
       "flops_per_second 512e9\n"
       "memory_bytes_per_second 33.8e9\n"
       "registers 64\n"
       "local_memory 0\n"},
      {"iris-xe-96eu", "Intel Iris Xe of 96 units at 1.3 GHz, LPDDR4X-4267 of 128 bits, as in Core i7-1165G7",
       // Intel's ARK: units, clock, memory. Intel's programmer's reference of the architecture: 8 lanes of
       // f32 and 7 threads a unit, 128 registers of 32 bytes a thread, which is 64 for each of 16
       // invocations. Local memory of its own, 64 KiB for a workgroup: Intel's GPU occupancy calculator.
       "flops_per_second 1997e9\n"
       "memory_bytes_per_second 68.3e9\n"
       "registers 64\n"
       "parallel_invocations 10752\n"
       "workgroup_memory 65536\n"
       "local_memory 1\n"},
      {"radeon-780m", "AMD Radeon 780M, DDR5-5600 of 128 bits",
       // AMD's product page: 12 units at 2.7 GHz; 64 lanes each, without the dual issue that AMD's own figure
       // (8.3 Tflop/s) counts. Mesa, src/amd/common: 2 SIMDs a unit of 16 waves and, here, 1024 registers of
       // 32 lanes, 128 for each of 8 waves. RDNA white paper: local memory of its own that gives 128 bytes a
       // clock, 32 elements beside 64 lanes. 32 KiB for a workgroup is what AMD's own driver gives; Mesa's
       // gives 64.
       "flops_per_second 4147e9\n"
       "memory_bytes_per_second 89.6e9\n"
       "registers 128\n"
       "parallel_invocations 12288\n"
       "workgroup_memory 32768\n"
       "local_memory 1\n"
       "load_multiply_adds 2\n"
       "shared_load_multiply_adds 2\n"},
      {"rtx-3060", "NVIDIA GeForce RTX 3060, 12 GB",
       // NVIDIA's product page: 3584 lanes, boost clock 1.78 GHz; memory of 192 bits at 15 Gbit/s. GA102
       // white paper: 28 multiprocessors of 128 lanes, whose cache and shared memory give 128 bytes a clock,
       // 32 elements. CUDA programming guide, compute capability 8.6: 1536 threads and 65536 registers each,
       // 128 for 512 threads; 48 KiB of shared memory for a block without asking for more, as its Vulkan
       // driver says. PCI Express 4.0 x16.
       "flops_per_second 12.74e12\n"
       "memory_bytes_per_second 360e9\n"
       "transfer_bytes_per_second 31.5e9\n"
       "registers 128\n"
       "parallel_invocations 43008\n"
       "workgroup_memory 49152\n"
       "local_memory 1\n"
       "load_multiply_adds 4\n"
       "shared_load_multiply_adds 4\n"},
  };
  return presets;
}

}  // namespace quernel
