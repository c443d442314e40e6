//! Checks that there is room for the logs of sessions.

use std::path::Path;

use super::Finding;

/// With less room than this the log of a busy session may not fit.
#[cfg(unix)]
const LITTLE: u64 = 64 * 1024 * 1024;

/// Checks the room on the disk of the home. `None` if it cannot be known, or if nothing is there;
/// the finding about the home says why.
#[cfg(unix)]
pub(super) fn check(home: &Path) -> Option<Finding> {
    // A home that does not exist yet is made on the disk of the folder above it.
    let folder = home.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(judge(home, disk.f_bavail.saturating_mul(disk.f_frsize)))
}

#[cfg(not(unix))]
pub(super) fn check(_home: &Path) -> Option<Finding> {
    None
}

#[cfg(unix)]
fn judge(home: &Path, free: u64) -> Finding {
    let home = home.display();
    let mebibytes = free / (1024 * 1024);
    match free {
        0 => Finding::Fail(format!(
            "no space is left for {home}; free some, else nothing can be stored"
        )),
        free if free < LITTLE => Finding::Warn(format!(
            "only {mebibytes} MiB are free for {home}; free some before it is full"
        )),
        _ => Finding::Ok(format!("{mebibytes} MiB are free for {home}")),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_folder() {
        let home = Path::new("/data/loopd");
        for (free, mark) in [
            (0, "Fail"),
            (1, "Warn"),
            (LITTLE - 1, "Warn"),
            (LITTLE, "Ok"),
        ] {
            let told = format!("{:?}", judge(home, free));
            assert!(
                told.starts_with(mark) && told.contains("/data/loopd"),
                "{free}: {told}"
            );
        }
        assert!(check(Path::new("/")).is_some());
    }
}
