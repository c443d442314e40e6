//! Recognises images by their first bytes and reads them for the model.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{DiskError, Outcome, ResolvedPath, disk, texts};
use crate::picture;
use crate::tool::ToolImage;
use loopd_kernel::model::ImageLimits;

/// The largest image that is read. One that models would not accept is made smaller.
pub(super) const MAX_BYTES: u64 = 30 * 1024 * 1024;

/// The largest image that models accept.
const MOST_SENT: u64 = 5 * 1024 * 1024;

/// Returns the format of an image that models can see.
pub(super) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Reads an image that was found to be small enough.
pub(super) fn read(place: &ResolvedPath, media_type: &str) -> Result<Outcome, DiskError> {
    let (file, _) = disk::open(&place.real)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(DiskError::TooLarge { limit: MAX_BYTES });
    }
    let fitted = picture::fit_bytes(&bytes, ImageLimits::default());
    if fitted.is_none() && bytes.len() as u64 > MOST_SENT {
        return Ok(Outcome::failure(format!(
            "The image has {} and could not be made smaller: it is damaged, or has too many pixels.",
            texts::size(bytes.len() as u64)
        )));
    }
    let mut image = ToolImage {
        path: texts::path(&place.asked),
        media_type: media_type.to_owned(),
        base64: String::new(),
        note: fitted.as_ref().map(picture::Fitted::note),
    };
    match fitted {
        Some(fitted) => {
            fitted.media_type.clone_into(&mut image.media_type);
            image.base64 = fitted.base64;
        }
        None => image.base64 = STANDARD.encode(bytes),
    }
    let mut outcome = Outcome::success(texts::IMAGE_VIEWED);
    outcome.images.push(image);
    Ok(outcome)
}
