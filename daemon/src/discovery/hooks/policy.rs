//! Hooks of whoever owns the machine. Nobody else may write their files.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::discovery::Problem;
use crate::discovery::files::LARGEST_FILE;
use crate::regular_file;

/// The folders below the root of the system.
const FOLDERS: [&str; 2] = ["etc/github-copilot/policy.d", "etc/loopd/policy.d"];

/// The folders of policy files, and the user who has to own the files.
#[derive(Debug, Clone)]
pub struct PolicyFolders {
    pub folders: Vec<PathBuf>,
    pub owner: u32,
}

impl Default for PolicyFolders {
    /// Returns the folders of this machine, whose files belong to root.
    fn default() -> Self {
        Self::below(Path::new("/"), 0)
    }
}

impl PolicyFolders {
    /// Returns the folders below another root.
    pub fn below(root: &Path, owner: u32) -> Self {
        Self {
            folders: FOLDERS.iter().map(|folder| root.join(folder)).collect(),
            owner,
        }
    }

    /// Reads a policy file, unless somebody else could have written it. What is checked is the file
    /// that was opened, so that it cannot be exchanged in between.
    pub(super) fn text(&self, path: &Path) -> Result<String, Problem> {
        let cannot = |error: std::io::Error| Problem::new(path, format!("cannot be read: {error}"));
        let file = regular_file::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (owner, mode) = (metadata.uid(), metadata.mode());
            if owner != self.owner {
                let what = format!(
                    "is not used: a policy file has to belong to {}, and this one belongs to user {owner}",
                    if self.owner == 0 {
                        "root".to_owned()
                    } else {
                        format!("user {}", self.owner)
                    }
                );
                return Err(Problem::new(path, what));
            }
            if mode & 0o022 != 0 {
                let what = format!(
                    "is not used: its group or everybody may write it (mode {:o}); chmod go-w it",
                    mode & 0o7777
                );
                return Err(Problem::new(path, what));
            }
        }
        let mut text = String::new();
        file.take(LARGEST_FILE + 1)
            .read_to_string(&mut text)
            .map_err(cannot)?;
        if text.len() as u64 > LARGEST_FILE {
            let what = format!("is larger than {} KiB and is not read", LARGEST_FILE / 1024);
            return Err(Problem::new(path, what));
        }
        Ok(text)
    }
}
