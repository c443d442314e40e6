//! Says what a rewind cannot bring back.

use crate::tool::capture::{NotCaptured, SkipReason, SkippedFile};
use loopd_proto::visible::for_person;

/// The most places that the text names.
const MOST_NAMED: usize = 20;

/// Returns a warning if commands ran before all files were copied and may have deleted some of them.
pub(super) fn warning(skipped: &[SkippedFile]) -> Option<String> {
    let lost = SkipReason::NotCaptured(NotCaptured::DeletedUncopied);
    let places = skipped.iter().filter(|skipped| skipped.reason == lost);
    let places: Vec<String> = places
        .map(|place| for_person(&place.path.to_string_lossy()))
        .collect();
    let more = places.len().saturating_sub(MOST_NAMED);
    let named = places.get(..MOST_NAMED).unwrap_or(&places).join(", ");
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more places"),
    };
    (!places.is_empty()).then(|| {
        format!(
            "A command ran before all files were copied for rewinds. Files that it deleted here cannot be brought back: {named}{more}."
        )
    })
}
