//! Which build this is: the version, and the binary it came from.

use std::path::Path;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

static BUILD: OnceLock<String> = OnceLock::new();

/// The build of this process; looked up once, before its binary can be replaced.
pub fn current() -> &'static str {
    BUILD.get_or_init(|| {
        let program = std::env::current_exe();
        of(program.as_deref().unwrap_or(Path::new("")))
    })
}

/// Names a build of the daemon: the version and a fingerprint of the executable, equal only for
/// the same binary.
pub fn of(program: &Path) -> String {
    let fingerprint = std::fs::metadata(program)
        // A binary that is missing, perhaps deleted while it runs, counts as another build.
        .map_or_else(
            |_| "unknown".to_owned(),
            |metadata| {
                let modified = metadata.modified().ok();
                let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let nanos = since.map_or(0, |since| since.as_nanos());
                format!("{:x}.{:x}", metadata.len(), nanos)
            },
        );
    format!("{}+{fingerprint}", env!("CARGO_PKG_VERSION"))
}
