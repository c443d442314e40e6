//! Links the daemon with packed relative relocations where the C library can read them.
//!
//! Every process reads the table of relocations when it starts. Packed, it is a hundredth of the
//! size, which saves nearly a megabyte in the file and in the memory of each process.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script things by variables and hears its answer on stdout"
)]

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let is_glibc =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // For another machine nobody here knows which C library it has.
    let is_here = variable("TARGET") == variable("HOST");
    if is_glibc && is_here && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc, which `getconf` writes as `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let version = text.trim().strip_prefix("glibc ")?;
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
