//! Says why a folder or file of the home cannot be used, and how to mend that.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// How a person chooses another home.
const ELSEWHERE: &str = "choose another home with LOOPD_HOME";

/// Returns the cause and the fix of a failure at this path, as a sentence without its end.
pub fn problem(path: &Path, error: &Error) -> String {
    // An error with words of its own has been explained where it came from.
    if error.get_ref().is_some() {
        return format!("{}: {error}; {ELSEWHERE}", path.display());
    }
    let blocked = path.ancestors().find(|place| is_no_folder(place));
    let nearest = path.ancestors().find(|place| place.exists());
    let nearest = nearest.unwrap_or(path).display();
    match (error.kind(), blocked) {
        (ErrorKind::AlreadyExists | ErrorKind::NotADirectory, Some(file)) => format!(
            "{} is not a folder; move it away, or {ELSEWHERE}",
            file.display()
        ),
        (ErrorKind::InvalidFilename, _) => format!(
            "the path {} is longer than the file system takes; choose a shorter one with LOOPD_HOME",
            path.display()
        ),
        (ErrorKind::PermissionDenied, _) => {
            format!(
                "this user may not use {nearest}; make it writable for this user, or {ELSEWHERE}"
            )
        }
        (ErrorKind::ReadOnlyFilesystem, _) => {
            format!("the file system of {nearest} is read-only; {ELSEWHERE}")
        }
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
            format!("no space is left on the disk of {nearest}; free some, or {ELSEWHERE}")
        }
        _ => format!("{}: {error}; {ELSEWHERE}", path.display()),
    }
}

/// Returns whether something is there that is not a folder, such as a file or a link that leads nowhere.
fn is_no_folder(place: &Path) -> bool {
    std::fs::symlink_metadata(place).is_ok() && !place.is_dir()
}
