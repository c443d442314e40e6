//! `loop daemon logs`: the end of the daemon's log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::bail;
use loopd_sdk::proto::home_paths;

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How much of the end is read. More lines than are in it are not shown.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn run(app: &App, lines: usize, path: bool) -> anyhow::Result<Outcome> {
    let home = app.connect_options().daemon_paths()?.home;
    let file = home_paths::log_file(&home);
    if path {
        app.terminal.print(&format!("{}\n", file.display()))?;
        return Ok(Outcome::Done);
    }
    let text = match end(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            app.terminal.notice(&format!(
                "{} does not exist; no daemon has written one yet",
                file.display()
            ));
            return Ok(Outcome::Done);
        }
        Err(error) => bail!("{} cannot be read: {error}", file.display()),
    };
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    for line in all.get(from..).unwrap_or_default() {
        let line = if app.options.json {
            serde_json::json!({ "line": line }).to_string()
        } else {
            sanitize(line)
        };
        app.terminal.print(&(line + "\n"))?;
    }
    Ok(Outcome::Done)
}

/// Returns the last whole lines of a file.
fn end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(MOST_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, whole)) if from > 0 => whole.to_owned(),
        _ => text,
    })
}
