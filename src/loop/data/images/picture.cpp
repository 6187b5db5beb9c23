// read_picture() looks at the header alone: the first chunk of a PNG is read here, and libjpeg
// reads that of a JPEG. It refuses sizes that the bytes cannot hold before anything is allocated
// for them. decode_picture() has libpng or libjpeg-turbo write rows with interleaved channels, and
// divides these into planes. Both libraries are in C and report errors by a function that must not
// return: Problem keeps the message and jumps back into the decoder, whose methods therefore have
// no objects with destructors. JPEG's warnings about missing data are errors, too.

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <png.h>

#include "base/core/throw_error.hpp"
#include "image_files.hpp"
// jpeglib.h needs the declarations of <cstdio>.
#include <jpeglib.h>
// jerror.h numbers libjpeg's warnings.
#include <jerror.h>

namespace rubato {

namespace {

constexpr std::string_view kPicture = "a whole PNG or JPEG file";
constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1A\n";
constexpr std::string_view kJpegSignature = "\xFF\xD8\xFF";
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26U;
// A byte of deflate yields up to 1032 bytes, each with up to eight pixels; JPEG compresses less.
constexpr std::int64_t kMostPixelsOfByte = std::int64_t{8} * 1032;

// The error handlers of both libraries call leave(). The functions that it jumps out of must not
// contain objects with destructors.
struct Problem {
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> text{};

  [[noreturn]] void leave(const char* message) {
    std::snprintf(text.data(), text.size(), "%s", message);
    std::longjmp(back, 1);  // NOLINT(cert-err52-cpp): the libraries are in C
  }
};

class PngDecoder {
 public:
  explicit PngDecoder(std::string_view bytes)
      : rest_(bytes),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &problem_, fail, ignore)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {}
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Writes rows of `row_bytes` bytes each, with interleaved channels; numbers of 16 bits have their
  // higher byte first. Returns false if the file is damaged.
  [[nodiscard]] bool decode(std::size_t row_bytes, unsigned char* pixels) {
    if (info_ == nullptr) return false;
    if (setjmp(problem_.back) != 0) return false;  // NOLINT(cert-err52-cpp): see above
    png_set_read_fn(png_, this, take);
    png_read_info(png_, info_);
    png_set_expand(png_);
    png_set_strip_alpha(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "it has another header");
    const std::size_t height = png_get_image_height(png_, info_);
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t y = 0; y < height; ++y) {
        png_read_row(png_, pixels + y * row_bytes, nullptr);
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }
  [[nodiscard]] const char* problem() const { return problem_.text.data(); }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    static_cast<Problem*>(png_get_error_ptr(png))->leave(message);
  }
  // Warnings concern things that do not change the pixels, such as a colour profile.
  static void ignore(png_structp /*png*/, png_const_charp /*message*/) {}
  static void take(png_structp png, png_bytep to, std::size_t count) {
    std::string_view& rest = static_cast<PngDecoder*>(png_get_io_ptr(png))->rest_;
    if (count > rest.size()) png_error(png, "it is cut off");
    std::memcpy(to, rest.data(), count);
    rest.remove_prefix(count);
  }

  Problem problem_;
  std::string_view rest_;
  png_structp png_;
  png_infop info_;
};

class JpegDecoder {
 public:
  JpegDecoder() {
    jpeg_std_error(&errors_.base);
    errors_.base.error_exit = fail;
    errors_.base.emit_message = warn;
    errors_.base.output_message = [](j_common_ptr /*jpeg*/) {};
    jpeg_.err = &errors_.base;
    progress_.progress_monitor = limit_scans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Returns false if the file is damaged.
  [[nodiscard]] bool read_header(std::string_view bytes) {
    if (setjmp(errors_.problem.back) != 0) return false;  // NOLINT(cert-err52-cpp): see above
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }
  // Decodes like PngDecoder::decode(); must follow read_header().
  [[nodiscard]] bool decode(std::size_t row_bytes, unsigned char* pixels) {
    if (setjmp(errors_.problem.back) != 0) return false;  // NOLINT(cert-err52-cpp): see above
    jpeg_.out_color_space = is_grey() ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels + jpeg_.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }
  [[nodiscard]] const jpeg_decompress_struct& of() const { return jpeg_; }
  [[nodiscard]] bool is_grey() const { return jpeg_.jpeg_color_space == JCS_GRAYSCALE; }
  [[nodiscard]] const char* problem() const { return errors_.problem.text.data(); }

 private:
  struct Errors {
    jpeg_error_mgr base{};
    Problem problem{};
  };
  static Errors& errors_of(j_common_ptr jpeg) { return *reinterpret_cast<Errors*>(jpeg->err); }

  [[noreturn]] static void fail(j_common_ptr jpeg) {
    std::array<char, JMSG_LENGTH_MAX> message{};
    (*jpeg->err->format_message)(jpeg, message.data());
    errors_of(jpeg).problem.leave(message.data());
  }
  // libjpeg continues after a warning, with grey instead of missing data. Surplus bytes between
  // markers are harmless.
  static void warn(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) fail(jpeg);
  }
  // A small file may contain endless scans, each of which covers the whole picture.
  static void limit_scans(j_common_ptr jpeg) {
    constexpr int kMostScans = 500;
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMostScans) {
      errors_of(jpeg).problem.leave("it has more than 500 scans");
    }
  }

  Errors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
};

[[noreturn]] void fail_picture(const std::string& source, std::string_view why) {
  throw_error("{}: {}; accepted: {}", source, why, kPicture);
}

std::int64_t big_endian_at(std::string_view bytes, std::size_t at) {
  std::int64_t number = 0;
  for (const char byte : bytes.substr(at, 4)) {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return number;
}

// The first chunk contains width, height, bit depth, and whether there are colours.
Picture read_png_header(std::string_view bytes, const std::string& source) {
  constexpr std::size_t kHeaderEnd = 26;
  if (bytes.size() < kHeaderEnd || bytes.substr(12, 4) != "IHDR") {
    fail_picture(source, "it is cut off");
  }
  // Type 0 is grey, and type 4 is grey with transparency.
  return {.bytes = bytes,
          .is_png = true,
          .height = big_endian_at(bytes, 20),
          .width = big_endian_at(bytes, 16),
          .is_grey = bytes[25] == 0 || bytes[25] == 4,
          .is_deep = bytes[24] == 16};
}

Picture read_jpeg_header(std::string_view bytes, const std::string& source) {
  JpegDecoder decoder;
  if (!decoder.read_header(bytes)) fail_picture(source, decoder.problem());
  const J_COLOR_SPACE space = decoder.of().jpeg_color_space;
  if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB) {
    throw_error(
        "{}: its colours are those of a printer (CMYK); accepted: grey, or red, green and blue",
        source);
  }
  return {.bytes = bytes,
          .height = decoder.of().image_height,
          .width = decoder.of().image_width,
          .is_grey = decoder.is_grey()};
}

}  // namespace

Picture read_picture(std::string_view bytes, const std::string& source) {
  const bool is_png = bytes.starts_with(kPngSignature);
  if (!is_png && !bytes.starts_with(kJpegSignature)) {
    fail_picture(source, "it is neither PNG nor JPEG");
  }
  const Picture picture = is_png ? read_png_header(bytes, source) : read_jpeg_header(bytes, source);
  const std::int64_t height = picture.height;
  const std::int64_t width = picture.width;
  if (height < 1 || width < 1 || height > kMostPixels / width) {
    throw_error("{}: its header says {} x {} pixels; accepted: up to {}", source, height, width,
                kMostPixels);
  }
  if (height * width / kMostPixelsOfByte > std::ssize(bytes)) {
    fail_picture(source, fmt::format("it claims {} x {} pixels, which {} bytes cannot hold", height,
                                     width, bytes.size()));
  }
  return picture;
}

std::uint32_t decode_picture(const Picture& picture, std::int64_t channels,
                             const std::string& source, char* planes) {
  const std::size_t stored = picture.is_grey ? 1 : 3;
  const std::size_t depth = picture.is_deep ? 2 : 1;
  const auto size = static_cast<std::size_t>(picture.height * picture.width);
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * stored * depth;
  std::vector<unsigned char> pixels(size * stored * depth);
  if (picture.is_png) {
    PngDecoder decoder(picture.bytes);
    if (!decoder.decode(row_bytes, pixels.data())) fail_picture(source, decoder.problem());
  } else {
    JpegDecoder decoder;
    if (!decoder.read_header(picture.bytes) || !decoder.decode(row_bytes, pixels.data())) {
      fail_picture(source, decoder.problem());
    }
  }
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const std::size_t from = std::min(c, stored - 1);
    for (std::size_t i = 0; i < size; ++i) {
      planes[c * size + i] = static_cast<char>(pixels[(i * stored + from) * depth]);
    }
  }
  std::uint32_t largest = 0;
  for (std::size_t i = 0; picture.is_deep && i < pixels.size(); i += depth) {
    largest = std::max(largest, std::uint32_t{pixels[i]} << 8U | pixels[i + 1]);
  }
  return largest;
}

}  // namespace rubato
