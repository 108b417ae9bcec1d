// What a knowledge graph's models are, cell by cell: a query's vector, its score with an entity, and the derivatives of
// both. Shared by every backend.
//
// A cell is a column, or of complex vectors a number, whose imaginary part stands dim / 2 columns after its real one.
// T: a float, or several as one vector; x: a cell of the known entity; z: of the relation, once `turned`; q: of the
// query; e: of an entity that is scored.
#pragma once

#include <cmath>

#include "kernels/views.hpp"
#if defined(__CUDACC__) || defined(GS_EMULATED)
#include "kernels/exec.hpp"
#else
#include "kernels/simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

template <class T>
struct Complex {
  T re, im;
};
template <class T>
GS_DEV Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
GS_DEV Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
GS_DEV Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
GS_DEV Complex<T> operator*(T a, Complex<T> b) {
  return {a * b.re, a * b.im};
}
template <class T>
GS_DEV Complex<T> conj(Complex<T> a) {
  return {a.re, T{} - a.im};
}
template <class T>
GS_DEV T squared(T x) {
  return x * x;
}
template <class T>
GS_DEV T squared(Complex<T> x) {
  return x.re * x.re + x.im * x.im;
}

template <Score S>
inline constexpr bool kPaired = S == Score::complex || S == Score::rotate;
template <Score S, class T>
using Cell = std::conditional_t<kPaired<S>, Complex<T>, T>;
template <Score S>
inline constexpr int kCellFloats = kPaired<S> ? 2 : 1;  // floats of a cell

// ------------------------------------------------------------------------------------------------ numbers of one lane

GS_DEV float magnitude(float x) { return fabsf(x); }
GS_DEV float signed_by(float size, float x) { return x == 0 ? 0.0f : x < 0 ? -size : size; }
GS_DEV float root(float x) { return sqrtf(x); }
GS_DEV float inverse_root(float x) { return x < 1.2e-38f ? 0.0f : 1 / sqrtf(x); }  // of 0, and below normal numbers, 0
GS_DEV float exp_of_negative(float x) { return expf(x); }
GS_DEV float log_of(float x) { return logf(x); }
#if !defined(__CUDACC__) && !defined(GS_EMULATED)
using simd::magnitude, simd::signed_by, simd::root, simd::inverse_root, simd::exp_of_negative, simd::log_of;
#endif

// -------------------------------------------------------------------------------------------------------------- cells

/// The number that a relation's cell multiplies by or adds: e^(i r) where r is a phase.
template <Score S>
GS_DEV Cell<S, float> turned(Cell<S, float> r) {
  if constexpr (S == Score::rotate) {
    Complex<float> z;
    sincosf(r.re, &z.im, &z.re);
    return z;
  } else {
    return r;
  }
}

template <Score S, class T>
GS_DEV Cell<S, T> query_of(Cell<S, T> x, Cell<S, T> z, bool asks_head) {
  if constexpr (S == Score::transe_l1 || S == Score::transe_l2) {
    return asks_head ? x - z : x + z;
  } else if constexpr (S == Score::distmult) {
    return x * z;
  } else {
    return x * (asks_head ? conj(z) : z);
  }
}

/// Adds a cell's share to the sum that `score_of` makes a score.
template <Score S, class T>
GS_DEV T add_cell(T sum, Cell<S, T> q, Cell<S, T> e) {
  if constexpr (S == Score::transe_l1) {
    return sum + magnitude(q - e);
  } else if constexpr (S == Score::transe_l2) {
    return sum + squared(q - e);
  } else if constexpr (S == Score::rotate) {
    return sum + root(squared(q - e));
  } else if constexpr (S == Score::complex) {
    return sum + q.re * e.re + q.im * e.im;
  } else {
    return sum + q * e;
  }
}
template <Score S, class T>
GS_DEV T score_of(T sum) {
  if constexpr (S == Score::transe_l2) {
    return -root(sum);
  } else {
    return is_distance(S) ? -sum : sum;
  }
}

/// c times the score's derivative by e's cell; all scores are alike in q and e, so with both exchanged it is that by
/// q's. transe_l2: c is divided by the distance beforehand. Distances have none at 0.
template <Score S, class T>
GS_DEV Cell<S, T> pull(Cell<S, T> q, Cell<S, T> e, T c) {
  if constexpr (S == Score::transe_l1) {
    return signed_by(c, q - e);
  } else if constexpr (S == Score::transe_l2) {
    return c * (q - e);
  } else if constexpr (S == Score::rotate) {
    const Complex<T> away = q - e;
    return c * inverse_root(squared(away)) * away;
  } else {
    return c * q;
  }
}

/// Of a query's gradient g, that of the two cells it is made of.
template <Score S, class T>
struct QueryParts {
  Cell<S, T> entity, relation;
};
template <Score S, class T>
GS_DEV QueryParts<S, T> parted(Cell<S, T> g, Cell<S, T> x, Cell<S, T> z, bool asks_head) {
  if constexpr (S == Score::transe_l1 || S == Score::transe_l2) {
    return {g, asks_head ? T{} - g : g};
  } else if constexpr (S == Score::distmult) {
    return {g * z, g * x};
  } else {
    if (asks_head) return {g * z, conj(g) * x};
    return {g * conj(z), g * conj(x)};
  }
}

/// The gradient of what `turned` was given.
template <Score S, class T>
GS_DEV Cell<S, T> unturned(Cell<S, T> g, Cell<S, T> z) {
  if constexpr (S == Score::rotate) {
    return {g.im * z.re - g.re * z.im, T{}};
  } else {
    return g;
  }
}

/// body(std::integral_constant<Score, score>).
template <class Body>
void with_score(Score score, const Body& body) {
  switch (score) {
    case Score::transe_l1:
      return body(std::integral_constant<Score, Score::transe_l1>());
    case Score::transe_l2:
      return body(std::integral_constant<Score, Score::transe_l2>());
    case Score::distmult:
      return body(std::integral_constant<Score, Score::distmult>());
    case Score::complex:
      return body(std::integral_constant<Score, Score::complex>());
    case Score::rotate:
      return body(std::integral_constant<Score, Score::rotate>());
  }
}

}  // namespace gs::kernels::GS_BACKEND
