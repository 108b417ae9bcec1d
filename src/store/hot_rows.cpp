#include <algorithm>

#include "graphscale/store.hpp"

namespace gs {

Offset choose_hot_rows(const Config& config, Offset local_rows, Offset row_bytes, Offset device_bytes, Device device) {
  if (config.store.hot_rows >= 0) return std::min(config.store.hot_rows, local_rows);
  if (!device.is_cuda()) return local_rows;
  const double fit = config.store.device_share * double(std::max<Offset>(0, device_bytes)) / double(row_bytes);
  return std::min(local_rows, Offset(fit));
}

}  // namespace gs
