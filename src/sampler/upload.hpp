// Host arrays to where kernels read them.
#pragma once

#include "graphscale/core.hpp"

namespace gs {

/// Host values into a buffer of exec's device.
template <class T>
Buffer<T> upload(Span<const T> values, const std::string& purpose, const Exec& exec) {
  Buffer<T> buffer(*exec.ledger, values.size, purpose);
  copy_bytes(buffer.data(), values.data, values.size * Offset(sizeof(T)), exec);
  wait(exec);
  return buffer;
}

}  // namespace gs
