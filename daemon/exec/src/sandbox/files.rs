//! Where a command in a sandbox may read and write: the rules that Landlock enforces. Running is not
//! restricted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::SandboxError;
use super::readable::readable;

/// The version of Landlock that knows all changes of files that we have to deny: from 2 on it
/// handles moving and linking between folders, from 3 on truncating.
const NEEDED: ABI = ABI::V3;

/// The newest version whose rights are handled where the kernel has them.
const WANTED: ABI = ABI::V9;

/// Devices to which everybody may write, because nothing is kept there.
const HARMLESS_DEVICES: [&str; 2] = ["/dev/null", "/dev/tty"];

/// Whether this version of Landlock is enough.
pub(super) fn check(version: io::Result<i64>) -> Result<(), SandboxError> {
    match version {
        Ok(version) if version >= NEEDED as i64 => Ok(()),
        Ok(version) => Err(SandboxError::OldLandlock(version)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Err(SandboxError::LandlockDisabled)
        }
        Err(_) => Err(SandboxError::NoLandlock),
    }
}

/// The rules of one sandbox.
pub(super) struct FileRules(RulesetCreated);

impl FileRules {
    pub(super) fn of(scratch: &OwnedFd, tty: Option<&Path>, home: &Path) -> io::Result<Self> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(NEEDED) | AccessFs::ReadFile)
            .map_err(io::Error::other)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(WANTED))
            .map_err(io::Error::other)?
            .scope(Scope::from_all(WANTED))
            .map_err(io::Error::other)?
            .create()
            .map_err(io::Error::other)?;
        // A device that root makes would lead to the disk below all files.
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
        let access = (AccessFs::from_write(NEEDED) & !devices) | AccessFs::ReadFile;
        rules = allow(rules, scratch, access)?;
        for path in readable(home) {
            // What is gone by now need not be read.
            if let Ok(opened) = PathFd::new(path) {
                rules = allow(rules, opened, AccessFs::ReadFile.into())?;
            }
        }
        let terminal = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        for device in HARMLESS_DEVICES.iter().map(Path::new).chain(tty) {
            let opened = PathFd::new(device).map_err(io::Error::other)?;
            rules = allow(rules, opened, terminal)?;
        }
        Ok(Self(rules))
    }

    /// Restricts this process for good.
    pub(super) fn enter(&self) -> io::Result<()> {
        let status = self.0.try_clone()?.restrict_self();
        match status.map_err(io::Error::other)?.ruleset {
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
            RulesetStatus::NotEnforced => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }
}

fn allow(
    rules: RulesetCreated,
    opened: impl AsFd,
    access: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    rules
        .add_rule(PathBeneath::new(opened, access))
        .map_err(io::Error::other)
}
