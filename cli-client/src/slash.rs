//! Lines that begin with a slash: commands of the daemon, and those of `loop` itself.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use loopd_sdk::proto::params::task::{Status, TaskInfo};
use loopd_sdk::proto::run_scope::RunLimits;
use loopd_sdk::{BegunWork, CommandInfo, Commands, FileProblem, Invoked, Message, Session};
use serde_json::json;

use crate::app::App;
use crate::limits;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How long the daemon may take to stop a command.
const STOPPING: Duration = Duration::from_secs(10);

/// A command that was stopped here before its end.
#[derive(Debug)]
pub(crate) struct CommandStopped {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
}

impl fmt::Display for CommandStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CommandStopped {}

/// What is to be done with a line.
#[derive(Debug)]
pub(crate) enum Said {
    /// It is a message for the agent.
    Send(Message),
    /// It was a command, which has run. What it has begun may go on.
    Done(Option<BegunWork>),
    /// It was a command, and nothing goes on because of it. Other clients may be at work all the same.
    Over(Outcome),
    /// It ends the conversation.
    Exit,
}

/// The commands of `loop` itself.
const OWN: [(&str, &str); 3] = [
    ("exit", "Leaves the session, which is kept (as Ctrl-D does)"),
    ("help", "Lists the commands"),
    ("usage", "Shows what the session has used, and what is left"),
];

/// A line that may be a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Typed<'a> {
    name: &'a str,
    input: &'a str,
    /// Whether the name looks like a path, as `tmp/x` and `notes.txt` do. Then the line is a message,
    /// unless a command has exactly this name.
    like_path: bool,
}

/// Reads a line as the name of a command and what comes after it. Returns `None` if it is a message: if it
/// does not begin with a slash, or begins with two.
fn typed(line: &str) -> Option<Typed<'_>> {
    let rest = line.trim_start().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, input) = rest.split_at_checked(end)?;
    (!name.is_empty() && !name.starts_with('/')).then(|| Typed {
        name,
        input: input.trim(),
        like_path: name.contains(['/', '.']),
    })
}

/// Returns whether a line is a command, or may be one: see [`is_listed`].
pub(crate) fn is_command(line: &str) -> bool {
    typed(line).is_some()
}

/// Returns whether a line begins like a path. Only the session knows whether it is a command all the same.
pub(crate) fn is_like_path(line: &str) -> bool {
    typed(line).is_some_and(|typed| typed.like_path)
}

/// Returns whether the session has the command that a line names.
pub(crate) async fn is_listed(session: &Session, line: &str) -> anyhow::Result<bool> {
    let Some(typed) = typed(line) else {
        return Ok(false);
    };
    Ok(is_known(&session.commands().await?, typed.name))
}

/// What a line is when it waits in the queue.
pub(crate) enum Queueable {
    Message(String),
    Command(String),
}

/// Reads a line for the queue as `read` reads a typed one, and does nothing else with it.
pub(crate) async fn queueable(session: &Session, line: &str) -> anyhow::Result<Queueable> {
    if line.trim().is_empty() {
        bail!("the text is empty: say what to do");
    }
    let Some(Typed {
        name, like_path, ..
    }) = typed(line)
    else {
        return Ok(Queueable::Message(unescaped(line)));
    };
    if OWN.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) || name == "quit" {
        bail!(
            "/{name} is a command of `loop` itself and cannot wait in the queue. To send it as a message, write two \
             slashes: //{name}"
        );
    }
    let known = session.commands_and_problems().await?;
    if is_known(&known.commands, name) {
        return Ok(Queueable::Command(line.trim().to_owned()));
    }
    if like_path || Path::new("/").join(name).exists() {
        return Ok(Queueable::Message(line.to_owned()));
    }
    bail!(
        "there is no command /{name}. To send a message that begins with a slash, write two: //{name}"
    )
}

/// Returns the message that a line is which is no command: two slashes at its beginning stand for one.
pub(crate) fn unescaped(line: &str) -> String {
    match line.trim_start().strip_prefix("//") {
        Some(rest) => format!("/{rest}"),
        None => line.to_owned(),
    }
}

fn is_known(commands: &[CommandInfo], name: &str) -> bool {
    commands.iter().any(|command| {
        let aliases = command.aliases.iter().flatten();
        let mut names = aliases.chain([&command.name]);
        names.any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// Returns whether a problem keeps a file from being the command of this name. A file that is used may have
/// problems, too.
fn is_unused(problem: &FileProblem, known: &[CommandInfo], name: &str) -> bool {
    let mut used = known.iter().filter_map(|command| command.path.as_ref());
    let file = Path::new(&problem.file).file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    let stem = file.strip_suffix(".md").unwrap_or(&file);
    let stem = stem.strip_suffix(".prompt").unwrap_or(stem);
    stem.eq_ignore_ascii_case(name) && !used.any(|path| *path == problem.file)
}

/// Does what a line says if it is a command; else returns the message to send.
pub(crate) async fn read(
    app: &App,
    session: &Session,
    line: &str,
    limits: Option<RunLimits>,
) -> anyhow::Result<Said> {
    let terminal = &app.terminal;
    let Some(Typed {
        name,
        input,
        like_path,
    }) = typed(line)
    else {
        return Ok(Said::Send(unescaped(line).into()));
    };
    let mut own = OWN.iter().map(|(own, _)| *own).chain(["quit"]);
    if !input.is_empty() && own.any(|own| own.eq_ignore_ascii_case(name)) {
        bail!("/{name} takes nothing after it, also no text from stdin; leave that out");
    }
    if name.eq_ignore_ascii_case("exit") || name.eq_ignore_ascii_case("quit") {
        return Ok(Said::Exit);
    }
    if name.eq_ignore_ascii_case("usage") {
        show(app, name, &limits::report(&session.usage().await?))?;
        return Ok(Said::Over(Outcome::Done));
    }
    let Commands {
        commands: known,
        problems,
    } = session.commands_and_problems().await?;
    if name.eq_ignore_ascii_case("help") {
        show(app, name, &help(&known))?;
        return Ok(Said::Over(Outcome::Done));
    }
    let is_known = is_known(&known, name);
    // A word like `/etc` is more likely a path, unless a file of that name was to be a command.
    let is_broken = problems
        .iter()
        .any(|problem| is_unused(problem, &known, name));
    let is_path = || like_path || Path::new("/").join(name).exists();
    if !is_known && !is_broken && is_path() {
        return Ok(Said::Send(line.into()));
    }
    let invoked = match invoke(app, session, (name, input), limits).await {
        // The daemon names the command that was most likely meant.
        Err(error) if error.is::<CommandStopped>() => return Err(error),
        Err(error) if is_broken => bail!("{}", sanitize(&error.to_string())),
        Err(error) if !is_known => bail!(
            "{}. To send a message that begins with a slash, write two: //{name}",
            sanitize(&error.to_string())
        ),
        invoked => invoked?,
    };
    match invoked {
        Invoked::Text {
            text,
            incomplete,
            begun,
            ..
        } => {
            show(app, name, &format!("{}\n", text.trim_end()))?;
            if let Some(why) = incomplete {
                terminal.notice(&format!(
                    "loop: the answer is not complete: {}",
                    sanitize(&why)
                ));
                return Ok(Said::Over(Outcome::Limit));
            }
            Ok(match begun {
                Some(begun) => Said::Done(Some(begun)),
                None => Said::Over(Outcome::Done),
            })
        }
        Invoked::Completed { message, begun, .. } => {
            // The progress of a fleet is shown, which says more.
            let message = message.filter(|_| begun != Some(BegunWork::Fleet));
            if let Some(message) = message {
                terminal.notice(&sanitize(&message));
            }
            Ok(Said::Done(begun))
        }
        Invoked::AgentPrompt {
            prompt,
            display_prompt,
            notice,
            run_scope,
            ..
        } => {
            if let Some(notice) = notice {
                terminal.notice(&sanitize(&notice));
            }
            Ok(Said::Send(Message {
                prompt,
                display_prompt: Some(display_prompt),
                scope: run_scope,
                ..Message::default()
            }))
        }
    }
}

/// Shows the text of a command: as it is, or as a line of JSON among those of events.
fn show(app: &App, name: &str, text: &str) -> std::io::Result<()> {
    if app.options.json {
        let data = json!({"command": name, "text": text.trim_end()});
        let line = json!({"type": "loopd.command_result", "data": data});
        return app.terminal.print(&format!("{line}\n"));
    }
    app.terminal.print(&sanitize(text))
}

/// Runs a command. Its parts may ask for permissions meanwhile. Ctrl-C stops it, and the time of the run
/// ends it.
async fn invoke(
    app: &App,
    session: &Session,
    (name, input): (&str, &str),
    limits: Option<RunLimits>,
) -> anyhow::Result<Invoked> {
    let timeout = app.options.run.timeout;
    let time_up = async {
        match timeout {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let invoking = session.invoke_command_within(name, input, limits);
    let reader = app.terminal.output_reader();
    tokio::pin!(invoking, time_up);
    let (outcome, why) = loop {
        tokio::select! {
            biased;
            invoked = &mut invoking => return Ok(invoked?),
            () = app.terminal.interrupted() => break (Outcome::Interrupted, String::new()),
            () = &mut time_up => {
                let time = timeout.unwrap_or_default().as_secs_f64();
                break (Outcome::TimedOut, format!(" after {time} seconds"));
            }
            () = reader.gone() => {
                break (Outcome::Failed, ", because nobody reads the output any more".to_owned());
            }
            question = app.turnstile.next() => question.release(),
        }
    };
    let shown = format!("/{name} {input}");
    // Who wants it to end does not wait for ever.
    let stopped = tokio::time::timeout(STOPPING, stop_agents_of(session, shown.trim_end())).await;
    if !matches!(stopped, Ok(Ok(()))) {
        app.terminal.notice(&format!(
            "loop: the agent of /{name} may still be at work; to see and stop it: loop tasks {}",
            session.id()
        ));
    }
    Err(CommandStopped {
        outcome,
        text: format!(
            "/{name} was stopped{why}; the session is kept: loop resume {}",
            session.id()
        ),
    }
    .into())
}

/// Stops the agents that work for a command. Those of others go on.
async fn stop_agents_of(session: &Session, shown: &str) -> anyhow::Result<()> {
    for node in session.tasks().await? {
        let TaskInfo::Agent(agent) = &node.task else {
            continue;
        };
        if agent.description == shown && agent.status == Status::Running {
            session.stop_task(agent.id.clone()).await?;
        }
    }
    Ok(())
}

fn help(known: &[CommandInfo]) -> String {
    let own = OWN
        .iter()
        .map(|(name, what)| (format!("/{name}"), (*what).to_owned()));
    let theirs = known
        .iter()
        .filter(|it| !OWN.iter().any(|(own, _)| it.name.eq_ignore_ascii_case(own)))
        .map(|it| {
            let hint = it.input.as_ref().map_or("", |input| &input.hint);
            let name = format!("/{} {hint}", it.name);
            let what = match &it.unavailable {
                Some(why) => format!("{} ({why})", it.description),
                None => it.description.clone(),
            };
            (name.trim_end().to_owned(), what)
        });
    let lines = own
        .chain(theirs)
        .map(|(name, what)| format!("{:<34} {}\n", sanitize(&name), sanitize(&what)));
    let mut text: String = lines.collect();
    text.push_str(
        "\nAnything else goes to the agent. A line that begins with a path (/tmp/x) is a message; to \
         send one that\nbegins with a slash otherwise, write two slashes.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        let command = |name, input| {
            Some(Typed {
                name,
                input,
                like_path: false,
            })
        };
        let path = |name, input| {
            Some(Typed {
                name,
                input,
                like_path: true,
            })
        };
        let cases = [
            ("/help", command("help", "")),
            ("  /plan  the work ", command("plan", "the work")),
            ("/model gpt-5 high", command("model", "gpt-5 high")),
            ("hello /help", None),
            ("//help", None),
            ("/tmp/x is too big", path("tmp/x", "is too big")),
            ("/notes.txt is old", path("notes.txt", "is old")),
            ("/v1.2 now", path("v1.2", "now")),
            ("/", None),
            ("/ what", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(typed(line), expected, "{line}");
        }
    }
}
