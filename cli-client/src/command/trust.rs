//! `loop trust`: what a folder would bring into its sessions, and whether it may.

use std::path::Path;

use anyhow::bail;
use loopd_sdk::{TrustItem, TrustItemKind, TrustShown};

use super::hooks::below;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

/// The kinds in the order in which they are shown, and their headings.
const HEADINGS: [(TrustItemKind, &str); 7] = [
    (TrustItemKind::Hook, "Hooks"),
    (TrustItemKind::Agent, "Agents"),
    (TrustItemKind::McpServer, "MCP servers"),
    (TrustItemKind::Permissions, "Permissions in settings"),
    (TrustItemKind::HookSwitch, "Settings"),
    (TrustItemKind::Command, "Slash commands"),
    (TrustItemKind::Skill, "Skills"),
];

pub(crate) async fn run(
    app: &App,
    directory: Option<&Path>,
    show: bool,
    yes: Option<&str>,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    let path = directory.to_string_lossy().into_owned();
    let shown = client.trust_show(Some(path)).await?;
    if let Some(hash) = yes {
        if hash != shown.hash {
            bail!(
                "nothing was trusted: what {} brings has the hash {}, not {}; look at it with \
                 `loop trust --show`",
                sanitize(&shown.root),
                shown.hash,
                sanitize(hash)
            );
        }
        let set = client.trust(&shown).await?;
        app.terminal.notice(&trusted(&set.path, set.items));
        client.close().await;
        return Ok(Outcome::Done);
    }
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&shown)? + "\n"))?;
    } else {
        app.terminal.print(&described(&shown))?;
        for problem in &shown.problems {
            app.terminal.notice(&super::problem_line(problem));
        }
    }
    let brings_nothing = shown.items.is_empty() && shown.missing.is_empty();
    let outcome = if show || shown.trusted || brings_nothing {
        Outcome::Done
    } else if app.terminal.can_ask() && !app.options.json {
        let question = "Use all of this in sessions here?\n";
        let answer = tokio::select! {
            answer = app.terminal.ask(question, "  yes or no? [y/n] ") => answer,
            () = app.terminal.interrupted() => return Ok(Outcome::Interrupted),
        };
        if matches!(answer.as_deref().map(str::trim), Some("y" | "yes")) {
            let set = client.trust(&shown).await?;
            app.terminal.notice(&trusted(&set.path, set.items));
            Outcome::Done
        } else {
            app.terminal.notice("nothing was trusted");
            Outcome::Failed
        }
    } else {
        let how = format!("to trust it: loop trust --yes {}", shown.hash);
        app.terminal
            .notice(&app.terminal.styled(Style::Dim, &format!("loop: {how}")));
        Outcome::NobodyToAsk
    };
    client.close().await;
    Ok(outcome)
}

fn trusted(path: &str, items: usize) -> String {
    let what = match items {
        0 => "nothing".to_owned(),
        1 => "1 item".to_owned(),
        many => format!("{many} items"),
    };
    format!("trusted {} with {what}", sanitize(path))
}

/// Describes what a project would bring, by kind.
fn described(shown: &TrustShown) -> String {
    let state = match (shown.items.is_empty(), shown.trusted) {
        (true, _) if !shown.missing.is_empty() => "brings nothing that needs trust any more",
        (true, _) => "brings nothing that needs trust",
        (false, true) => "is trusted with all of this",
        (false, false) => "brings this, which is not trusted in full",
    };
    let mut lines = vec![format!("{} {state}", shown.root)];
    for (kind, heading) in HEADINGS {
        let items = shown.items.iter().filter(|item| item.kind == kind);
        let items: Vec<String> = items
            .map(|item| row(mark(item), item, &shown.root))
            .collect();
        if !items.is_empty() {
            lines.push(format!("{heading}:"));
            lines.extend(items);
        }
    }
    if !shown.missing.is_empty() {
        let heading = "Guards that were trusted and are not there any more as they were; what they \
                       guard is denied until you trust the folder without them:";
        lines.push(heading.to_owned());
        let missing = shown.missing.iter();
        lines.extend(missing.map(|item| row("missing", item, &shown.root)));
    }
    lines.push(format!("hash {}", shown.hash));
    sanitize(&lines.join("\n")) + "\n"
}

fn mark(item: &TrustItem) -> &'static str {
    if item.trusted { "trusted" } else { "new" }
}

fn row(mark: &str, item: &TrustItem, root: &str) -> String {
    let line = item.line.map(|line| format!(":{line}"));
    let file = below(&item.file, Path::new(root));
    // Who wrote the file must not be able to write rows of their own.
    let detail = item.detail.replace('\n', " ");
    let head = format!(
        "  {mark:<8} {file}{}  {}",
        line.unwrap_or_default(),
        item.name
    );
    let head = head.replace('\n', " ");
    match detail.as_str() {
        "" => head,
        detail => format!("{head}\n           {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_brings_is_shown_by_kind() {
        let item = |kind, name: &str, detail: &str, trusted| TrustItem {
            kind,
            file: "/app/f".to_owned(),
            line: (kind == TrustItemKind::Hook).then_some(3),
            name: name.to_owned(),
            detail: detail.to_owned(),
            trusted,
            hash: String::new(),
        };
        let shown = TrustShown {
            path: "/app/sub".to_owned(),
            root: "/app".to_owned(),
            hash: "abc".to_owned(),
            trusted: false,
            items: vec![
                item(TrustItemKind::Agent, "writer", "", true),
                item(
                    TrustItemKind::Hook,
                    "preToolUse (bash)",
                    "rm\u{1b} -rf",
                    false,
                ),
            ],
            missing: vec![item(TrustItemKind::Hook, "preToolUse", "./g.sh", true)],
            problems: Vec::new(),
        };
        assert_eq!(
            described(&shown),
            "/app brings this, which is not trusted in full\n\
             Hooks:\n  new      f:3  preToolUse (bash)\n           rm\\x1b -rf\n\
             Agents:\n  trusted  f  writer\n\
             Guards that were trusted and are not there any more as they were; what they guard is \
             denied until you trust the folder without them:\n  missing  f:3  preToolUse\n           ./g.sh\n\
             hash abc\n"
        );
    }
}
