//! Which build this is: the version, and the binary it came from.

use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

static BUILD: OnceLock<String> = OnceLock::new();

/// The version and a fingerprint of the executable; equal only for the same binary.
pub fn current() -> &'static str {
    BUILD.get_or_init(|| {
        let fingerprint = std::env::current_exe()
            .and_then(std::fs::metadata)
            // A binary that was deleted under us is some other build.
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
    })
}
