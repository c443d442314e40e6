//! What the model reads in the place of what was taken out to make room.

use crate::prune::WholeText;

/// Says how much of a result is left out, and where all of it is.
pub(crate) fn left_out(bytes: usize, of: usize, whole: &WholeText) -> String {
    let place = match whole {
        WholeText::File(path) => format!("All of it is in the file {path}."),
        WholeText::Unsaved(why) => {
            format!("It could not be kept in a file ({why}); call the tool again if you need it.")
        }
    };
    format!("[{bytes} of {of} bytes of this output are left out here to save room. {place}]")
}
