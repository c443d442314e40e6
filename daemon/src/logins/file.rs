//! Where logins are kept between two lives of the daemon: a file in its home that only its user reads.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use loopd_mcp::oauth::Login;
use serde::{Deserialize, Serialize};

use super::LoginKey;
use crate::regular_file;

const NAME: &str = "mcp-logins.json";
/// The largest file.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The file with the logins.
#[derive(Debug, Clone)]
pub(super) struct LoginFile(PathBuf);

#[derive(Default, Serialize, Deserialize)]
struct Content {
    #[serde(default)]
    logins: BTreeMap<LoginKey, Login>,
}

impl LoginFile {
    pub(super) fn of(home: &Path) -> Self {
        Self(home.join(NAME))
    }

    /// Reads all logins. The error says what is wrong with the file, which is left as it is.
    pub(super) fn load(&self) -> Result<BTreeMap<LoginKey, Login>, String> {
        let file = self.0.display();
        let text = match regular_file::read_text(&self.0, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(format!("{file} cannot be read: {error}")),
        };
        let content: Content = serde_json::from_str(&text).map_err(|error| {
            // The text of the error may quote the file.
            let (line, column) = (error.line(), error.column());
            format!(
                "{file} holds no logins (line {line}, column {column}); move it away to begin anew"
            )
        })?;
        Ok(content.logins)
    }

    /// Replaces the file at once. Others may not read it.
    pub(super) fn store(&self, logins: BTreeMap<LoginKey, Login>) -> std::io::Result<()> {
        if logins.is_empty() {
            return match std::fs::remove_file(&self.0) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let mut text = serde_json::to_string_pretty(&Content { logins })?;
        text.push('\n');
        let folder = self.0.parent().unwrap_or(Path::new("."));
        // A temporary file is readable by its user alone, and stays so under its new name.
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&self.0).map_err(|error| error.error)?;
        Ok(())
    }
}
