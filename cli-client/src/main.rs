//! The terminal client of loopd. A skeleton so far.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "says what this build cannot do yet")]
fn main() -> ExitCode {
    eprintln!(
        "loop: this build has no terminal client yet (protocol version {}); use an SDK with loopd",
        loopd_sdk::PROTOCOL_VERSION
    );
    ExitCode::FAILURE
}
