#pragma once

#include <cairo-svg.h>
#include <cairo.h>

namespace rubato::app {

/// The functions of libcairo that pictures are drawn with. The library is loaded when the first
/// picture is drawn: linked with, it would make each start of the program a third longer.
struct Cairo {
#define RUBATO_CAIRO_FUNCTIONS(X)  \
  X(create)                        \
  X(destroy)                       \
  X(image_surface_create)          \
  X(line_to)                       \
  X(move_to)                       \
  X(paint)                         \
  X(restore)                       \
  X(rotate)                        \
  X(save)                          \
  X(scale)                         \
  X(select_font_face)              \
  X(set_dash)                      \
  X(set_font_size)                 \
  X(set_line_cap)                  \
  X(set_line_join)                 \
  X(set_line_width)                \
  X(set_source_rgb)                \
  X(show_text)                     \
  X(status)                        \
  X(status_to_string)              \
  X(stroke)                        \
  X(surface_destroy)               \
  X(surface_finish)                \
  X(surface_status)                \
  X(surface_write_to_png_stream)   \
  X(svg_surface_create_for_stream) \
  X(text_extents)                  \
  X(translate)
// A member has no parentheses around its name.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define RUBATO_MEMBER(name) decltype(&::cairo_##name) name = nullptr;
  RUBATO_CAIRO_FUNCTIONS(RUBATO_MEMBER)
#undef RUBATO_MEMBER
};

/// Throws Error where the library is not there, or lacks one of them.
[[nodiscard]] const Cairo& cairo();

}  // namespace rubato::app
