// Gradients on the wire.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void encode_gradients(const GradientCodec&, Rows<const float>, Span<const float>, const Feedback&, void*, const Exec&) {
  throw Error(Fault::internal, "encode_gradients");
}
void add_coded(const GradientCodec&, const void*, Span<const RowId>, Rows<float>, Span<float>, const Exec&) {
  throw Error(Fault::internal, "add_coded");
}
void add_rows(Rows<const float>, Span<const float>, Span<const RowId>, Rows<float>, Span<float>, const Exec&) {
  throw Error(Fault::internal, "add_rows");
}

}  // namespace gs::kernels::GS_BACKEND
