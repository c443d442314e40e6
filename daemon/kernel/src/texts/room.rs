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

/// Stands for what a provider refused.
pub(crate) const IMAGE_REFUSED: &str =
    "[An image was here. The model provider refused it, so that it is left out.]";
pub(crate) const DOCUMENT_REFUSED: &str =
    "[A document was here. The model provider refused it, so that it is left out.]";

/// Tells people that images or documents are left out, and why.
pub(crate) fn files_left_out(why: &str) -> String {
    format!(
        "The model provider refused the request, most likely because of an image or a document in it: {why} They are left \
         out of the conversation from now on, and the request is sent again without them. Attach them again in another \
         format, smaller, or with another model."
    )
}
