//! Runs the command of a hook: the payload on its standard input, its answer on standard output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::context::HookContext;
use super::handlers::FileHook;
use super::output::{HookFailure, HookOutput};
use crate::discovery::hooks::{HookKind, HookOrigin, HookPlace, PayloadForm};
use loopd_exec::process::{Exit, InputPipe, Io, Lifetime, OwnedProcess, Spawn};

/// The most bytes that a hook may print.
const LONGEST_OUTPUT: usize = 1024 * 1024;
/// A folder that cannot be.
const NO_CACHE: &str = "/dev/null/none";

/// How long the output of a hook that has ended is still read, if something holds it open.
const GRACE: Duration = Duration::from_millis(500);

/// A command to run.
pub(super) struct HookCommand<'a> {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub place: &'a HookPlace,
}

/// Runs a hook's command. It is killed when it takes too long, prints too much, or the turn ends.
pub(super) async fn run(
    context: &HookContext,
    hook: &FileHook,
    command: HookCommand<'_>,
    payload: &Value,
) -> Result<HookOutput, HookFailure> {
    let definition = &hook.definition;
    let payload = format!("{payload}\n");
    let spawn = Spawn {
        program: command.program,
        args: command.args.into_iter().map(Into::into).collect(),
        env: environment(context, hook, command.place),
        cwd: folder(context, hook, command.place),
        // A command of the session that could take the input away would blind a guard.
        io: Io::Given {
            input: payload.as_bytes().into(),
        },
        // The command ends with whoever waits for it.
        lifetime: Lifetime::Turn,
        session: Some(context.session.clone()),
        label: format!("hook {} {}", definition.kind, definition.action),
        // A hook is of people, not of the model: plan mode does not confine it.
        sandbox: None,
    };
    let spawned = context.services.processes.spawn(spawn).await;
    let mut process = spawned.map_err(|error| HookFailure::failed(error.to_string()))?;
    let mut printed = Printed::default();
    let end = end(context, &mut process, &payload, &mut printed);
    let ended = tokio::select! {
        ended = timeout(definition.timeout, end) => ended.unwrap_or_else(|_| {
            Err(HookFailure::failed(format!(
                "it did not end within {} s (`timeoutSec` sets the limit)",
                definition.timeout.as_secs_f64()
            )))
        }),
        () = context.cancel.cancelled() => {
            Err(HookFailure::failed("the turn was stopped while it ran"))
        }
    };
    // What the command left running ends with it.
    process.kill().await;
    judge(definition.kind, definition.form, &printed, ended?)
}

/// What a command printed, without its progress lines.
#[derive(Default)]
struct Printed {
    output: PrintedText,
    errors: PrintedText,
}

/// What was read from a stream so far.
#[derive(Default)]
struct PrintedText {
    kept: Vec<u8>,
    /// The line that has not ended yet.
    line: Vec<u8>,
}

impl PrintedText {
    fn text(&self) -> String {
        let all = [self.kept.as_slice(), &self.line].concat();
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// Gives a command its input and reads what it prints, until it has ended.
async fn end(
    context: &HookContext,
    process: &mut OwnedProcess,
    payload: &str,
    printed: &mut Printed,
) -> Result<Exit, HookFailure> {
    let (input, errors) = (process.input.take(), process.errors.take());
    let (socket, pipe) = (process.output_socket.take(), process.output.take());
    let write = async {
        if let Some(input) = input {
            feed(input, payload).await;
        }
        Ok(())
    };
    let output = async {
        let takes = |line: &str| progress(context, line);
        match socket {
            Some(socket) => read(Some(socket), &mut printed.output, takes).await,
            None => read(pipe, &mut printed.output, takes).await,
        }
    };
    let errors = read(errors, &mut printed.errors, |_| false);
    let exchange = async { tokio::try_join!(write, output, errors) };
    tokio::pin!(exchange);
    tokio::select! {
        exchanged = &mut exchange => {
            exchanged?;
            Ok(process.exit().await)
        }
        exit = process.exit() => {
            // What the command left running may hold its output open.
            if let Ok(exchanged) = timeout(GRACE, exchange).await {
                exchanged?;
            }
            Ok(exit)
        }
    }
}

async fn feed(mut input: InputPipe, payload: &str) {
    // A command that does not read its input gets along without it.
    input.write_all(payload.as_bytes()).await.ok();
}

/// Reads a stream to its end, without the lines that `takes` takes.
async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    printed: &mut PrintedText,
    mut takes: impl FnMut(&str) -> bool,
) -> Result<(), HookFailure> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut total = 0;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).await;
        let count = read.map_err(|error| HookFailure::failed(error.to_string()))?;
        total += count;
        if total > LONGEST_OUTPUT {
            return Err(HookFailure::failed(format!(
                "it printed more than {LONGEST_OUTPUT} bytes"
            )));
        }
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        for byte in bytes {
            printed.line.push(*byte);
            if *byte == b'\n' {
                let line = std::mem::take(&mut printed.line);
                if !takes(&String::from_utf8_lossy(&line)) {
                    printed.kept.extend_from_slice(&line);
                }
            }
        }
    }
    if takes(&String::from_utf8_lossy(&printed.line)) {
        printed.line.clear();
    }
    Ok(())
}

/// Shows people a progress line; returns whether the line was one.
fn progress(context: &HookContext, line: &str) -> bool {
    // A line that says more is an answer, and must not be taken for progress.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        #[serde(rename = "type")]
        kind: String,
        message: String,
        temporary: Option<bool>,
    }
    let line = line.trim();
    if !line.starts_with('{') {
        return false;
    }
    let Ok(parsed) = serde_json::from_str::<Line>(line) else {
        return false;
    };
    if parsed.kind != "progress" {
        return false;
    }
    context.show_progress(&parsed.message, parsed.temporary);
    true
}

/// Turns the end of a command into its answer.
fn judge(
    kind: HookKind,
    form: PayloadForm,
    printed: &Printed,
    exit: Exit,
) -> Result<HookOutput, HookFailure> {
    let (text, errors) = (printed.output.text(), printed.errors.text());
    let (text, errors) = (text.trim(), errors.trim());
    let parsed = || match text {
        "" => Ok(HookOutput::default()),
        text => HookOutput::read(text),
    };
    match exit {
        Exit::Code(0) if text.is_empty() && lost_output(errors) => Err(HookFailure::failed(
            "its standard output cannot be opened by a name, so that what it wrote is lost; let it write \
             to its standard output itself, without `> /dev/stdout`",
        )),
        Exit::Code(0) => match parsed() {
            // Claude's hooks may print a plain text. Of some events it becomes a part of the conversation,
            // of others it says nothing.
            Err(_) if form == PayloadForm::Claude && !text.starts_with(['{', '[']) => {
                plain_text(kind, text).unwrap_or_else(|| HookOutput::read(text))
            }
            other => other,
        },
        Exit::Code(2) => {
            let mut output = parsed().unwrap_or_default();
            let reason = if errors.is_empty() && output.members.is_empty() {
                text
            } else {
                errors
            };
            output.refused = Some(reason.to_owned());
            Ok(output)
        }
        Exit::Code(code) => Err(HookFailure::failed(ended(
            &format!("it ended with exit code {code}"),
            errors,
        ))),
        Exit::Signal(signal) => Err(HookFailure::failed(ended(
            &format!("it was killed by signal {signal}"),
            errors,
        ))),
        Exit::Unknown => Err(HookFailure::failed("it is unknown how it ended")),
    }
}

/// The names of standard output.
const OUTPUT_NAMES: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Whether a command says that it could not open its standard output by a name: it is a socket.
fn lost_output(errors: &str) -> bool {
    OUTPUT_NAMES.iter().any(|name| errors.contains(name))
}

fn ended(how: &str, errors: &str) -> String {
    let last: String = errors
        .lines()
        .last()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect();
    if last.is_empty() {
        how.to_owned()
    } else {
        format!("{how}: {last}")
    }
}

/// Returns what a plain text of this kind of hook means; `None` if it is no answer, because a guard has to
/// say what it decides.
fn plain_text(kind: HookKind, text: &str) -> Option<Result<HookOutput, HookFailure>> {
    let told = matches!(
        kind,
        HookKind::SessionStart | HookKind::UserPromptSubmitted | HookKind::SubagentStart
    );
    (told || !kind.is_guard()).then(|| {
        Ok(HookOutput {
            text: told.then(|| text.to_owned()),
            ..HookOutput::default()
        })
    })
}

/// Returns the root of the project for the hook. One that had to be trusted means the files that it
/// was trusted with, wherever the agent works.
fn project<'a>(context: &'a HookContext, hook: &'a FileHook) -> &'a Path {
    let trusted = &hook.definition.root;
    if trusted.as_os_str().is_empty() {
        &context.project
    } else {
        trusted
    }
}

fn folder(context: &HookContext, hook: &FileHook, place: &HookPlace) -> PathBuf {
    let source = &hook.definition.source;
    // Hooks of an app, like those of the user, are about wherever the session works.
    let trusted = source
        .folder
        .as_ref()
        .filter(|_| source.origin != HookOrigin::App);
    match (&place.cwd, trusted) {
        (Some(folder), _) => project(context, hook).join(folder),
        (None, Some(trusted)) => trusted.clone(),
        (None, None) => PathBuf::from(&context.cwd),
    }
}

/// Returns the environment of the command: what commands of the session see, the hook's own
/// variables, and where things are.
fn environment(
    context: &HookContext,
    hook: &FileHook,
    place: &HookPlace,
) -> BTreeMap<String, String> {
    let launch = context.launch.as_ref();
    let seen = launch.map(|launch| launch.child_environment(&context.services.config));
    let mut env = seen.unwrap_or_default();
    // What Python keeps of an earlier run in `__pycache__` counts for its source, and is not what was
    // trusted. Below this name nothing can be.
    env.insert("PYTHONPYCACHEPREFIX".to_owned(), NO_CACHE.to_owned());
    let own = env.clone();
    for (name, value) in &place.env {
        let expanded = expand(value, &own);
        env.insert(name.clone(), expanded);
    }
    let project = project(context, hook).display().to_string();
    env.insert("CLAUDE_PROJECT_DIR".to_owned(), project.clone());
    env.insert("COPILOT_PROJECT_DIR".to_owned(), project);
    if let Some(plugin) = &hook.definition.source.plugin {
        let plugin = plugin.display().to_string();
        env.insert("CLAUDE_PLUGIN_ROOT".to_owned(), plugin.clone());
        env.insert("COPILOT_PLUGIN_ROOT".to_owned(), plugin);
    }
    env
}

/// Replaces `$NAME` and `${NAME}` by the variables of the session; an unknown name by nothing.
pub(super) fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (name, after_name) = match after.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((name, after)) if name.chars().all(is_name) => (name, after),
            _ => after.split_at(after.find(|letter| !is_name(letter)).unwrap_or(after.len())),
        };
        if name.is_empty() {
            expanded.push('$');
            rest = after;
        } else {
            expanded.push_str(env.get(name).map(String::as_str).unwrap_or_default());
            rest = after_name;
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
