// Gradients on the wire: coded <- gradients, sums[slots] += decoded, and sums[slots] += gradients as they are.
//
// A unit is a row: a warp (CUDA), or a thread with vectors that asks memory for the sums to come (CPU). The order of
// adds within a row is fixed: every backend gives the same bytes.
//
// A row reads dim floats and writes its code, or the other way round; residuals and sums are read and written.
#include "kernels/codec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

template <Compression kKind>
struct EncodeRows {
  static constexpr bool kFeedback = kKind == Compression::topk || kKind == Compression::onebit;
  GradientCodec codec;
  Rows<const float> gradients;
  Span<const float> curvature;
  Feedback feedback;
  char* coded;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, gradients.count);
    for (Offset i = group.first; i < group.last; i += group.step) {
      if (i + kAhead < gradients.count)
        if (const float* next = residual_of(i + kAhead)) ask_for(next, codec.dim * 4);
      encode(lanes, i);
    }
  }

 private:
  GS_DEV float* residual_of(Offset i) const {
    const bool has_one = kFeedback && !feedback.rows.empty() && feedback.rows[i] < feedback.residual.count;
    return has_one ? feedback.residual.row(feedback.rows[i]) : nullptr;
  }

  GS_DEV void encode(const Lanes& lanes, Offset i) const {
    const float* const gradient = gradients.row(i);
    float* const residual = residual_of(i);
    char* const out = coded + i * codec.row_bytes();
    if (residual) {
      lanes.each(codec.dim, [=](int c) { residual[c] += gradient[c]; });
      lanes.sync();
    }
    Coder<kKind>::encode(lanes, codec, residual ? residual : gradient, out);
    if (lanes.is_first()) *reinterpret_cast<float*>(out + codec.row_bytes() - 4) = curvature[i];
    if (residual) {
      lanes.sync();
      Coder<kKind>::add(lanes, codec, out, -1.0f, residual);
    }
  }
};

template <Compression kKind>
struct AddCoded {
  GradientCodec codec;
  const char* coded;
  Span<const RowId> slots;
  Rows<float> sums;
  Span<float> curvature;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, slots.size);
    const int row_bytes = codec.row_bytes();
    for (Offset i = group.first; i < group.last; i += group.step) {
      if (i + kAhead < slots.size) ask_for(sums.row(slots[i + kAhead]), codec.dim * 4);
      const char* const row = coded + i * row_bytes;
      Coder<kKind>::add(lanes, codec, row, 1.0f, sums.row(slots[i]));
      if (lanes.is_first()) curvature[slots[i]] += *reinterpret_cast<const float*>(row + row_bytes - 4);
      lanes.sync();  // the next row may have the same slot
    }
  }
};

struct AddRows {
  Rows<const float> gradients;
  Span<const float> gradient_curvature;
  Span<const RowId> slots;
  Rows<float> sums;
  Span<float> curvature;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, slots.size);
    for (Offset i = group.first; i < group.last; i += group.step) {
      if (i + kAhead < slots.size) ask_for(sums.row(slots[i + kAhead]), sums.dim * 4);
      const float* const gradient = gradients.row(i);
      float* const sum = sums.row(slots[i]);
      lanes.each(sums.dim, [=](int c) { sum[c] += gradient[c]; });
      if (lanes.is_first()) curvature[slots[i]] += gradient_curvature[i];
    }
  }
};

/// Calls f with the codec's kind as a constant.
template <class F>
void with_kind(const char* op, const GradientCodec& codec, const F& f) {
  using enum Compression;
  GS_EXPECT(codec.kind != topk || (codec.keep >= 1 && codec.keep <= codec.dim && codec.dim <= 1 << 16), op,
            ": topk keeps ", codec.keep, " of ", codec.dim, " columns; from 1 to all of at most 65536 are possible");
  switch (codec.kind) {
    case none:
      return f(std::integral_constant<Compression, none>());
    case fp16:
      return f(std::integral_constant<Compression, fp16>());
    case int8:
      return f(std::integral_constant<Compression, int8>());
    case topk:
      return f(std::integral_constant<Compression, topk>());
    case onebit:
      return f(std::integral_constant<Compression, onebit>());
  }
}

void encode_gradients(const GradientCodec& codec, Rows<const float> gradients, Span<const float> curvature,
                      const Feedback& feedback, void* coded, const Exec& exec) {
  GS_EXPECT(gradients.dim == codec.dim && curvature.size == gradients.count, "encode_gradients: [", gradients.count,
            ", ", gradients.dim, "] gradients and ", curvature.size, " curvatures for a codec of ", codec.dim,
            " columns");
  GS_EXPECT(feedback.rows.empty() || (feedback.rows.size == gradients.count && feedback.residual.dim == codec.dim),
            "encode_gradients: residuals of ", feedback.residual.dim, " columns and ", feedback.rows.size,
            " rows for [", gradients.count, ", ", codec.dim, "] gradients");
  with_kind("encode_gradients", codec, [&](auto kind) {
    const EncodeRows<kind.value> body{codec, gradients, curvature, feedback, static_cast<char*>(coded)};
    for_each_row_group("encode_gradients", gradients.count, 0, body, exec);
  });
}

void add_coded(const GradientCodec& codec, const void* coded, Span<const RowId> slots, Rows<float> sums,
               Span<float> curvature, const Exec& exec) {
  GS_EXPECT(sums.dim == codec.dim && curvature.size == sums.count, "add_coded: sums [", sums.count, ", ", sums.dim,
            "] and ", curvature.size, " curvatures for a codec of ", codec.dim, " columns");
  with_kind("add_coded", codec, [&](auto kind) {
    const AddCoded<kind.value> body{codec, static_cast<const char*>(coded), slots, sums, curvature};
    for_each_row_group("add_coded", slots.size, 0, body, exec);
  });
}

void add_rows(Rows<const float> gradients, Span<const float> gradient_curvature, Span<const RowId> slots,
              Rows<float> sums, Span<float> curvature, const Exec& exec) {
  GS_EXPECT(gradients.count == slots.size && gradient_curvature.size == slots.size && gradients.dim == sums.dim &&
                curvature.size == sums.count,
            "add_rows: [", gradients.count, ", ", gradients.dim, "] gradients and ", gradient_curvature.size,
            " curvatures at ", slots.size, " slots of sums [", sums.count, ", ", sums.dim, "] and ", curvature.size,
            " curvatures");
  for_each_row_group("add_rows", slots.size, 0, AddRows{gradients, gradient_curvature, slots, sums, curvature}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
