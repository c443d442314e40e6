//! Which build this is: the version, and the binary it came from.

use std::path::Path;
use std::sync::OnceLock;

static BUILD: OnceLock<String> = OnceLock::new();

/// The build of this process; looked up once, before its binary can be replaced.
pub fn current() -> &'static str {
    BUILD.get_or_init(|| {
        let program = std::env::current_exe();
        loopd_proto::home_paths::build_of(program.as_deref().unwrap_or(Path::new("")))
    })
}
