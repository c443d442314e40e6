//! `loop hooks`: the hooks for sessions in a directory.

use std::path::Path;

use loopd_sdk::{HookActionKind, ListedHook, ListedHookState};

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

pub(crate) async fn run(app: &App, directory: Option<&Path>) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    let listed = client
        .hooks(Some(directory.to_string_lossy().into_owned()))
        .await?;
    client.close().await;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&listed)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    if listed.hooks.is_empty() {
        app.terminal.notice("no hooks");
    }
    for hook in &listed.hooks {
        let text = described(hook, &directory);
        let style = match hook.state {
            ListedHookState::Runs => None,
            ListedHookState::Untrusted | ListedHookState::Off => Some(Style::Dim),
        };
        let text = style.map_or_else(|| text.clone(), |style| app.terminal.styled(style, &text));
        app.terminal.print(&(text + "\n"))?;
    }
    for problem in &listed.problems {
        app.terminal.notice(&super::problem_line(problem));
    }
    Ok(Outcome::Done)
}

/// Describes a hook in a few lines, because paths and commands are too long for columns.
fn described(hook: &ListedHook, directory: &Path) -> String {
    let state = match hook.state {
        ListedHookState::Runs => "runs",
        ListedHookState::Untrusted => "not trusted",
        ListedHookState::Off => "off",
    };
    let matcher = hook.matcher.as_ref();
    let matcher = matcher.map(|matcher| format!(" ({matcher})"));
    let head = format!(
        "{}:{}  {}{}  {state}",
        below(&hook.file, directory),
        hook.line,
        hook.event,
        matcher.unwrap_or_default(),
    );
    let mut lines = vec![head.replace('\n', " ")];
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("    {name:<9} {}", value.replace('\n', " "))));
    };
    line("from", Some(hook.origin.clone()));
    let action = match hook.action {
        HookActionKind::Command => "command",
        HookActionKind::Http => "address",
        HookActionKind::Prompt => "prompt",
    };
    line(action, Some(hook.command.clone()));
    line("if", hook.condition.clone());
    for file in &hook.files {
        line("file", Some(below(file, directory)));
    }
    line("why", hook.why.clone());
    line("time", time(hook));
    sanitize(&lines.join("\n"))
}

/// Says how often a hook ran and how long it took, if the daemon knows.
fn time(hook: &ListedHook) -> Option<String> {
    let runs = hook.runs?;
    let last = hook
        .last_ms
        .map(|ms| format!(", the last one took {ms} ms"));
    let times = if runs == 1 { "run" } else { "runs" };
    Some(format!("{runs} {times}{}", last.unwrap_or_default()))
}

/// Returns a path below a directory without the directory.
pub(super) fn below(file: &str, directory: &Path) -> String {
    let real = directory.canonicalize();
    let inside = Path::new(file).strip_prefix(real.as_deref().unwrap_or(directory));
    inside.map_or_else(|_| file.to_owned(), |inside| inside.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook() -> ListedHook {
        ListedHook {
            event: "preToolUse".to_owned(),
            origin: "project".to_owned(),
            file: "/app/.github/hooks/a.json".to_owned(),
            line: 5,
            matcher: Some("bash|edit".to_owned()),
            condition: None,
            action: HookActionKind::Command,
            command: "./guard.sh\n\u{1b}[31m".to_owned(),
            files: vec!["/app/guard.sh".to_owned()],
            timeout_sec: 30.0,
            state: ListedHookState::Untrusted,
            why: Some("its folder is not trusted with it".to_owned()),
            hash: String::new(),
            runs: None,
            last_ms: None,
        }
    }

    #[test]
    fn a_hook_is_described_and_cannot_control_the_terminal() {
        assert_eq!(
            described(&hook(), Path::new("/app")),
            ".github/hooks/a.json:5  preToolUse (bash|edit)  not trusted\n    \
                 from      project\n    \
                 command   ./guard.sh \\x1b[31m\n    \
                 file      guard.sh\n    \
                 why       its folder is not trusted with it"
        );
        let ran = ListedHook {
            runs: Some(3),
            last_ms: Some(12),
            ..hook()
        };
        assert_eq!(
            time(&ran).as_deref(),
            Some("3 runs, the last one took 12 ms")
        );
    }
}
