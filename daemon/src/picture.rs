//! Makes images fit what models take: not too many pixels, not too many bytes, a format that is known.
//!
//! An image that fits stays as it is, byte for byte, and so does one that cannot be read: whoever gets
//! it says what is wrong with it.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Rgb, RgbImage};
use tokio::sync::Semaphore;

use loopd_kernel::model::ImageLimits;
use loopd_proto::attachment::Attachment;
use loopd_proto::event::tool::ToolResult;

/// The longest edge of an image. Vendors shrink longer ones themselves, or refuse them where a request
/// has several.
const LONGEST_EDGE: u32 = 2_000;

/// The most bytes of an image whose model does not say how many it takes.
const USUAL_BYTES: u64 = 3 * 1024 * 1024;

/// An image with more pixels is not decoded: it would take too much memory.
const MOST_PIXELS: u64 = 50_000_000;

/// The most bytes that decoding may take.
const MOST_MEMORY: u64 = 400 * 1024 * 1024;

/// How well photographs are kept.
const QUALITY: u8 = 85;

/// How often an image is made smaller until it has few enough bytes.
const STEPS: u32 = 8;

/// One image at a time, because each takes so much memory.
static DECODING: Semaphore = Semaphore::const_new(1);

/// An image that was made to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    pub media_type: &'static str,
    pub base64: String,
    /// Width and height before and after.
    pub from: (u32, u32),
    pub to: (u32, u32),
}

impl Fitted {
    /// Says what was done, for the model: what it says of places in the image is about the smaller one.
    pub fn note(&self) -> String {
        let ((wide, high), (now_wide, now_high)) = (self.from, self.to);
        if self.from == self.to {
            format!("stored anew as {}, {wide}x{high} pixels", self.media_type)
        } else {
            format!("made smaller, from {wide}x{high} to {now_wide}x{now_high} pixels")
        }
    }
}

/// Makes an image fit. `None` if it does, or cannot be read.
pub async fn fit(base64: String, limits: ImageLimits) -> Option<Fitted> {
    // The semaphore is never closed.
    let place = DECODING.acquire().await.ok()?;
    let work = tokio::task::spawn_blocking(move || {
        let bytes = STANDARD.decode(base64.as_bytes()).ok()?;
        fit_bytes(&bytes, limits)
    });
    let fitted = work.await;
    drop(place);
    fitted.unwrap_or_else(|error| {
        tracing::error!(%error, "an image could not be looked at");
        None
    })
}

/// Makes the images of a result fit. What a model reads with an image says so.
pub async fn fit_results(result: &mut ToolResult) {
    let all = result.binary_results_for_llm.iter_mut().flatten();
    for image in all.filter(|binary| binary.kind == "image") {
        let data = image.data.clone();
        let Some(fitted) = fit(data, ImageLimits::default()).await else {
            continue;
        };
        let note = fitted.note();
        let known = image.description.take();
        image.description = Some(match known {
            Some(known) => known + &in_brackets(&note),
            None => format!("An image, {note}"),
        });
        fitted.media_type.clone_into(&mut image.mime_type);
        image.data = fitted.base64;
    }
}

/// Returns a note as it follows a description.
pub fn in_brackets(note: &str) -> String {
    format!(" ({note})")
}

/// Makes the images of a message fit. Returns its attachments if any of them was changed, and notes
/// for the model.
pub async fn fit_attachments(
    attachments: &[Attachment],
    limits: ImageLimits,
) -> Option<(Vec<Attachment>, Vec<String>)> {
    let mut fitted = attachments.to_vec();
    let mut notes = Vec::new();
    for attachment in &mut fitted {
        let Attachment::Blob {
            data,
            mime_type,
            display_name,
        } = attachment
        else {
            continue;
        };
        if !mime_type.starts_with("image/") {
            continue;
        }
        if let Some(fitted) = fit(data.clone(), limits).await {
            let name = display_name.as_deref().unwrap_or("an image");
            notes.push(format!("{name} was {}", fitted.note()));
            fitted.media_type.clone_into(mime_type);
            *data = fitted.base64;
        }
    }
    (!notes.is_empty()).then_some((fitted, notes))
}

/// Does the same with bytes, on this thread.
pub fn fit_bytes(bytes: &[u8], limits: ImageLimits) -> Option<Fitted> {
    let most = limits.bytes.unwrap_or(USUAL_BYTES);
    let reader = ImageReader::new(Cursor::new(bytes));
    let format = reader.with_guessed_format().ok()?.format()?;
    let (width, height) = ImageReader::with_format(Cursor::new(bytes), format)
        .into_dimensions()
        .ok()?;
    let is_taken = limits
        .formats
        .is_none_or(|formats| formats.has(format.to_mime_type()));
    if width.max(height) <= LONGEST_EDGE && bytes.len() as u64 <= most && is_taken {
        return None;
    }
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        tracing::warn!(
            width,
            height,
            "an image has too many pixels to be made smaller"
        );
        return None;
    }
    let (whole, orientation) = decoded(bytes, format)
        .inspect_err(|error| tracing::warn!(%error, "an image could not be made smaller"))
        .ok()?;
    let from = (whole.width(), whole.height());
    let photograph = format == ImageFormat::Jpeg;
    let fitted = smaller(whole, orientation, photograph, (most, limits));
    fitted.map(|fitted| Fitted { from, ..fitted })
}

fn decoded(
    bytes: &[u8],
    format: ImageFormat,
) -> Result<(DynamicImage, Orientation), image::ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut bounds = image::Limits::default();
    bounds.max_alloc = Some(MOST_MEMORY);
    reader.limits(bounds);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder)?, orientation))
}

/// Makes the image smaller until it has few enough bytes.
fn smaller(
    whole: DynamicImage,
    orientation: Orientation,
    photograph: bool,
    (most, limits): (u64, ImageLimits),
) -> Option<Fitted> {
    let from = (whole.width(), whole.height());
    let mut edge = from.0.max(from.1).min(LONGEST_EDGE);
    for _ in 0..STEPS {
        let mut image = if from.0.max(from.1) > edge {
            whole.resize(edge, edge, FilterType::CatmullRom)
        } else {
            whole.clone()
        };
        // What the camera says about up and down is not kept in what is written.
        image.apply_orientation(orientation);
        let to = (image.width(), image.height());
        for (media_type, bytes) in written(&image, photograph, limits) {
            if bytes.len() as u64 <= most {
                return Some(Fitted {
                    media_type,
                    base64: STANDARD.encode(bytes),
                    from,
                    to,
                });
            }
        }
        edge = edge / 4 * 3;
    }
    None
}

/// Writes an image: first in the format that keeps it best.
fn written(
    image: &DynamicImage,
    photograph: bool,
    limits: ImageLimits,
) -> Vec<(&'static str, Vec<u8>)> {
    let takes = |media_type: &str| limits.formats.is_none_or(|formats| formats.has(media_type));
    let mut all = Vec::new();
    if !photograph && takes("image/png") {
        let mut bytes = Cursor::new(Vec::new());
        if image.write_to(&mut bytes, ImageFormat::Png).is_ok() {
            all.push(("image/png", bytes.into_inner()));
        }
    }
    if takes("image/jpeg") {
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
        if on_white(image).write_with_encoder(encoder).is_ok() {
            all.push(("image/jpeg", bytes));
        }
    }
    all
}

/// Puts an image on white: a JPEG has no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    let mut flat = RgbImage::new(image.width(), image.height());
    for (to, from) in flat.pixels_mut().zip(image.pixels()) {
        let [red, green, blue, alpha] = from.0;
        let mix = |colour: u8| {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            u8::try_from((colour * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
        };
        *to = Rgb([mix(red), mix(green), mix(blue)]);
    }
    flat
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;
    use loopd_kernel::model::ImageFormats;

    /// An image in which no two neighbours are alike.
    fn noise(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let pixel = |x: u32, y: u32| {
            let mixed = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503) ^ (x * y);
            let [red, green, blue, _] = mixed.to_le_bytes();
            Rgb([red, green, blue])
        };
        let image = DynamicImage::from(RgbImage::from_fn(width, height, pixel));
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn size_of(fitted: &Fitted) -> (u32, u32, usize) {
        let bytes = STANDARD.decode(&fitted.base64).unwrap();
        let image = image::load_from_memory(&bytes).unwrap();
        (image.width(), image.height(), bytes.len())
    }

    #[test]
    fn an_image_that_fits_stays_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif] {
            let bytes = noise(300, 200, format);
            assert_eq!(fit_bytes(&bytes, ImageLimits::default()), None);
        }
        for unreadable in [&b"GIF89a"[..], b"no image", b"", b"\x89PNG\r\n\x1a\n"] {
            assert_eq!(fit_bytes(unreadable, ImageLimits::default()), None);
        }
    }

    #[test]
    fn a_large_image_is_made_smaller_and_keeps_its_shape() {
        let bytes = noise(4_000, 100, ImageFormat::Png);
        let fitted = fit_bytes(&bytes, ImageLimits::default()).unwrap();
        assert_eq!((fitted.from, fitted.to), ((4_000, 100), (2_000, 50)));
        assert_eq!(fitted.media_type, "image/png");
        let (width, height, _) = size_of(&fitted);
        assert_eq!((width, height), (2_000, 50));
        assert!(fitted.note().contains("from 4000x100 to 2000x50"));
    }

    #[test]
    fn an_image_with_too_many_bytes_gets_fewer() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let bytes = noise(900, 900, format);
            let limits = ImageLimits {
                bytes: Some(60_000),
                ..ImageLimits::default()
            };
            let fitted = fit_bytes(&bytes, limits).unwrap();
            assert_eq!(fitted.from, (900, 900));
            let (.., size) = size_of(&fitted);
            assert!(size <= 60_000, "{size}");
        }
    }

    #[test]
    fn a_format_that_the_model_does_not_take_is_written_in_another_one() {
        let limits = ImageLimits {
            formats: ImageFormats::of(["image/jpeg"]),
            ..ImageLimits::default()
        };
        let fitted = fit_bytes(&noise(30, 20, ImageFormat::Png), limits).unwrap();
        assert_eq!((fitted.media_type, fitted.to), ("image/jpeg", (30, 20)));
        assert!(fitted.note().contains("stored anew"), "{}", fitted.note());
        let same = fit_bytes(&noise(30, 20, ImageFormat::Jpeg), limits);
        assert_eq!(same, None);
    }

    #[test]
    fn transparency_becomes_white() {
        let clear = image::RgbaImage::from_pixel(10, 10, image::Rgba([10, 20, 30, 0]));
        let flat = on_white(&DynamicImage::from(clear));
        assert_eq!(flat.get_pixel(3, 3), &Rgb([255, 255, 255]));
    }

    #[test]
    fn an_image_of_too_many_pixels_is_not_decoded() {
        // The header says 60,000 by 60,000.
        let mut bytes = noise(8, 8, ImageFormat::Png);
        let side = 60_000_u32.to_be_bytes();
        bytes.splice(16..24, side.into_iter().chain(side));
        assert_eq!(fit_bytes(&bytes, ImageLimits::default()), None);
    }

    #[tokio::test]
    async fn base64_in_and_out() {
        let bytes = noise(2_100, 10, ImageFormat::Png);
        let fitted = fit(STANDARD.encode(bytes), ImageLimits::default()).await;
        assert_eq!(fitted.unwrap().to, (2_000, 10));
        assert_eq!(
            fit("no base64!".to_owned(), ImageLimits::default()).await,
            None
        );
    }
}
