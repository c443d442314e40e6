//! `loop hooks`: the hooks for sessions in a directory.

use std::path::Path;

use loopd_sdk::proto::event::hook::GuardingApp;
use loopd_sdk::proto::method::LoopdHooksLift;
use loopd_sdk::proto::params::discovery::FileProblem;
use loopd_sdk::proto::params::hook_list::{GuardLiftParams, GuardLifted, HooksAccepted};
use loopd_sdk::{HookActionKind, HookTestParams, ListedHook, ListedHookState, TriedHook};

use anyhow::bail;

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

pub(crate) async fn run(app: &App, directory: Option<&Path>) -> anyhow::Result<Outcome> {
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    if !directory.is_dir() {
        bail!(
            "{} is no directory; give the directory whose hooks you want to see",
            directory.display()
        );
    }
    let client = app.connect().await?;
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

/// Runs the hooks of a file once.
pub(crate) async fn test(app: &App, file: &Path, event: String) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let params = HookTestParams {
        file: app.directory.join(file).to_string_lossy().into_owned(),
        event,
        cwd: Some(app.directory.to_string_lossy().into_owned()),
    };
    let tested = client.test_hooks(params).await;
    client.close().await;
    let tested = tested?;
    let failed = !tested.problems.is_empty() || tested.hooks.iter().any(|it| it.error.is_some());
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&tested)? + "\n"))?;
    } else {
        for hook in &tested.hooks {
            app.terminal.print(&tried(file, hook))?;
        }
        for problem in &tested.problems {
            app.terminal.notice(&super::problem_line(problem));
        }
        if tested.hooks.is_empty() {
            app.terminal
                .notice("the file has no hook for this event that could be run");
        }
    }
    Ok(if failed || tested.hooks.is_empty() {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

fn tried(file: &Path, hook: &TriedHook) -> String {
    let answer = match (&hook.error, &hook.output) {
        (Some(error), _) => format!("failed    {error}"),
        (None, Some(output)) => format!("answered  {output}"),
        (None, None) => "answered  nothing".to_owned(),
    };
    let mut lines = vec![
        format!("{}:{}  {} ms", file.display(), hook.line, hook.milliseconds),
        format!("    command   {}", hook.command.replace('\n', " ")),
        format!("    was told  {}", hook.payload),
        format!("    {answer}"),
    ];
    let effect = hook.effect.iter();
    lines.extend(effect.map(|effect| format!("    effect    {effect}")));
    let notices = hook.notices.iter();
    lines.extend(notices.map(|notice| format!("    notice    {notice}")));
    sanitize(&lines.join("\n")) + "\n"
}

/// Accepts the user's own files of hooks as they are.
pub(crate) async fn accept(app: &App) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let cwd = Some(app.directory.to_string_lossy().into_owned());
    let accepted = client.accept_hooks(cwd).await;
    client.close().await;
    let accepted = accepted?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&accepted)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    for line in what_is_accepted(&accepted) {
        app.terminal.notice(&line);
    }
    app.terminal
        .notice("your own files of hooks count as they are now");
    Ok(Outcome::Done)
}

/// Names the guards that are given up, that changed and that are new by an acceptance.
fn what_is_accepted(accepted: &HooksAccepted) -> Vec<String> {
    let is_same = |one: &FileProblem, other: &FileProblem| {
        one.file == other.file && one.message == other.message
    };
    let HooksAccepted {
        given_up, added, ..
    } = accepted;
    let mut lines = Vec::new();
    for guard in given_up {
        let is_changed = added.iter().any(|new| is_same(guard, new));
        if !is_changed {
            lines.push(format!("no longer guards: {}", super::problem_line(guard)));
        }
    }
    for guard in added {
        let is_changed = given_up.iter().any(|old| is_same(old, guard));
        let what = if is_changed { "changed" } else { "new" };
        lines.push(format!("{what}: {}", super::problem_line(guard)));
    }
    for file in &accepted.turned_off_by {
        lines.push(format!("turns off all hooks: {}", sanitize(file)));
    }
    if lines.is_empty() {
        lines.push("nothing has changed".to_owned());
    }
    lines
}

/// Lets a session go on without the apps whose hooks guard it.
pub(crate) async fn lift(
    app: &App,
    session: Option<&str>,
    attached: bool,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = super::queue::join(app, &client, session).await?;
    let params = GuardLiftParams {
        session_id: session.id().clone(),
        attached,
    };
    let lifted = session.call::<LoopdHooksLift>(&params).await;
    let id = session.id().clone();
    drop(session);
    client.close().await;
    let lifted = lifted?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&lifted)? + "\n"))?;
    } else {
        app.terminal
            .notice(&sanitize(&what_was_lifted(id.as_str(), &lifted)));
    }
    let all_stay = !lifted.lifted && !lifted.attached.is_empty();
    Ok(if all_stay {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

fn what_was_lifted(id: &str, lifted: &GuardLifted) -> String {
    let mut sentences = Vec::new();
    if lifted.lifted {
        let apps = named(&lifted.apps);
        sentences.push(format!("{id} goes on without the hooks of {apps}"));
    } else if lifted.attached.is_empty() {
        sentences.push(format!("no hooks of an app guard {id}"));
    }
    if !lifted.attached.is_empty() {
        let apps = named(&lifted.attached);
        sentences.push(format!(
            "the hooks of {apps} go on guarding {id}, because the app is attached; to lift them, too: \
             loop hooks lift --attached {id}"
        ));
    }
    sentences.join("; ")
}

/// Names apps for people.
fn named(apps: &[GuardingApp]) -> String {
    let names = apps.iter().map(|app| match app.name.as_str() {
        "" => "an app without a name".to_owned(),
        name => format!("the app `{name}`"),
    });
    names.collect::<Vec<_>>().join(" and ")
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
