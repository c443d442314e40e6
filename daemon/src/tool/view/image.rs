//! Recognises images by their first bytes and reads them for the model.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{DiskError, Outcome, ResolvedPath, disk, texts};
use crate::tool::ToolImage;

/// The maximum size of an image that models accept.
pub(super) const MAX_BYTES: u64 = 5 * 1024 * 1024;

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
    let mut outcome = Outcome::success(texts::IMAGE_VIEWED);
    outcome.images.push(ToolImage {
        path: texts::path(&place.asked),
        media_type: media_type.to_owned(),
        base64: STANDARD.encode(bytes),
    });
    Ok(outcome)
}
