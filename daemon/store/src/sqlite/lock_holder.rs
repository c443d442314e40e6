//! Which other process keeps a lock on the database.

use std::path::Path;

/// Names another process that has a lock on the database or a file beside it, if one can be found.
#[cfg(target_os = "linux")]
pub(super) fn of(database: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;

    let beside = |ending: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(name).ok().map(|file| file.ino())
    };
    let files: Vec<u64> = ["", "-shm", "-wal"]
        .into_iter()
        .filter_map(beside)
        .collect();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let own = std::process::id();
    let pid = locks.lines().find_map(|line| {
        // A waiting lock has an arrow after its number.
        let words: Vec<&str> = line.split_whitespace().filter(|it| *it != "->").collect();
        let pid: u32 = words.get(4)?.parse().ok()?;
        let inode: u64 = words.get(5)?.rsplit(':').next()?.parse().ok()?;
        (pid != own && files.contains(&inode)).then_some(pid)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = loopd_proto::visible::visible(name.trim()).into_owned();
    Some(format!("process {pid}, `{name}`"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn of(_database: &Path) -> Option<String> {
    None
}
