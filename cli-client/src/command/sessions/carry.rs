//! `loop sessions export` and `import`: a session as a file for another home.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use loopd_sdk::proto::method::PermissionsModifyRules;
use loopd_sdk::proto::params::permission::{ModifyRulesParams, RuleScope};
use loopd_sdk::{Client, Import, SessionConfig, SessionId};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::allow;
use crate::amount::counted;
use crate::app::{App, find_session};
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// The name that stands for stdin and stdout.
const STREAM: &str = "-";

pub(super) async fn export(
    app: &App,
    client: &Client,
    id: &str,
    output: Option<PathBuf>,
    without_files: bool,
) -> anyhow::Result<Outcome> {
    let id = find_session(client, id).await?;
    if output.as_deref() == Some(Path::new(STREAM)) {
        let mut out = tokio::io::stdout();
        let left_out = write(client, &id, without_files, &mut out).await?;
        tell(app, &left_out);
        return Ok(Outcome::Done);
    }
    let name = output.unwrap_or_else(|| PathBuf::from(format!("session-{id}.jsonl")));
    let path = app.directory.join(&name);
    let file = tokio::fs::File::create_new(&path).await;
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => anyhow::anyhow!(
            "{} exists already and is not overwritten; name another file with --output",
            path.display()
        ),
        _ => anyhow::anyhow!("{} cannot be written: {error}", path.display()),
    })?;
    let left_out = match write(client, &id, without_files, &mut file).await {
        Ok(left_out) => left_out,
        Err(error) => {
            drop(file);
            // Half a bundle must not be taken for one; the error says why there is none.
            tokio::fs::remove_file(&path).await.ok();
            return Err(error);
        }
    };
    file.sync_all().await?;
    if app.options.json {
        let line = serde_json::json!({"sessionId": id, "file": path, "leftOut": left_out});
        app.terminal.print(&format!("{line}\n"))?;
        return Ok(Outcome::Done);
    }
    app.terminal.print(&format!("{}\n", name.display()))?;
    tell(app, &left_out);
    let how = format!(
        "to go on elsewhere: loop sessions import {}",
        name.display()
    );
    app.terminal.notice(&sanitize(&how));
    Ok(Outcome::Done)
}

async fn write(
    client: &Client,
    id: &SessionId,
    without_files: bool,
    to: &mut (impl AsyncWrite + Unpin),
) -> anyhow::Result<Vec<String>> {
    let left_out = if without_files {
        client.export_session_without_files(id.clone(), to).await?
    } else {
        client.export_session(id.clone(), to).await?
    };
    to.flush().await?;
    Ok(left_out)
}

fn tell(app: &App, left_out: &[String]) {
    for what in left_out {
        app.terminal
            .notice(&format!("left out: {}", sanitize(what)));
    }
}

pub(super) async fn import(
    app: &App,
    client: &Client,
    file: &Path,
    directory: Option<&Path>,
    copy: bool,
) -> anyhow::Result<Outcome> {
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    if !directory.is_dir() {
        bail!(
            "{} is no directory; give the one that the session works in with --directory",
            directory.display()
        );
    }
    let import = Import {
        working_directory: Some(directory.to_string_lossy().into_owned()),
        new_id: copy,
    };
    let imported = if file == Path::new(STREAM) {
        client.import_session(&mut tokio::io::stdin(), import).await
    } else {
        let path = app.directory.join(file);
        let opened = tokio::fs::File::open(&path).await;
        let mut opened = opened.with_context(|| format!("{} cannot be read", path.display()))?;
        client.import_session(&mut opened, import).await
    };
    let imported = imported.map_err(|error| match error {
        loopd_sdk::Error::File(error) => {
            anyhow::anyhow!("{} is no session bundle of loopd: {error}", file.display())
        }
        error => anyhow::anyhow!("{}: {error}", file.display()),
    })?;
    let id = imported.session_id.clone();
    allow_looking(client, &id, &directory).await?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&imported)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    app.terminal.print(&format!("{id}\n"))?;
    tell(app, &imported.left_out);
    app.terminal.notice(&format!(
        "{} and {} were taken over; what was allowed in the other home is asked again",
        counted(usize::try_from(imported.events)?, "event", "events"),
        counted(usize::try_from(imported.files)?, "file", "files"),
    ));
    app.terminal.notice(&format!("to go on: loop resume {id}"));
    Ok(Outcome::Done)
}

/// Gives the session the rules that every new session of this client has.
async fn allow_looking(client: &Client, id: &SessionId, directory: &Path) -> anyhow::Result<()> {
    let config = SessionConfig::new().leave_permissions_open();
    let session = client.watch(id.clone(), config).await?;
    let params = ModifyRulesParams {
        session_id: id.clone(),
        scope: RuleScope::Session,
        add: allow::default_rules(&directory.to_string_lossy()).collect(),
        remove: Vec::new(),
        remove_all: false,
        deny: Vec::new(),
    };
    session.call::<PermissionsModifyRules>(&params).await?;
    Ok(())
}
