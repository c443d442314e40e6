//! Lines that begin with a slash: commands of the daemon, and those of `loop` itself.

use anyhow::bail;
use loopd_sdk::{BegunWork, CommandInfo, Invoked, Message, Session};

use crate::app::App;
use crate::limits;
use crate::terminal::sanitize;

/// What is to be done with a line.
#[derive(Debug)]
pub(crate) enum Said {
    /// It is a message for the agent.
    Send(Message),
    /// It was a command, which has run. What it has begun may go on.
    Done(Option<BegunWork>),
    /// It ends the conversation.
    Exit,
}

/// The commands of `loop` itself.
const OWN: [(&str, &str); 3] = [
    ("exit", "Leaves the session, which is kept (as Ctrl-D does)"),
    ("help", "Lists the commands"),
    ("usage", "Shows what the session has used, and what is left"),
];

/// Splits a line into the name of a command and what comes after it. Returns `None` if it is a
/// message: if it does not begin with a slash, begins with two, or begins with a path.
fn command(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, input) = rest.split_at_checked(end)?;
    let is_path = name.is_empty() || name.contains('/') || name.contains('.');
    (!is_path).then(|| (name, input.trim()))
}

/// Returns whether a line is a command.
pub(crate) fn is_command(line: &str) -> bool {
    command(line).is_some()
}

/// Does what a line says if it is a command; else returns the message to send.
pub(crate) async fn read(app: &App, session: &Session, line: &str) -> anyhow::Result<Said> {
    let terminal = &app.terminal;
    let Some((name, input)) = command(line) else {
        let message = match line.trim_start().strip_prefix("//") {
            Some(rest) => format!("/{rest}"),
            None => line.to_owned(),
        };
        return Ok(Said::Send(message.into()));
    };
    if name.eq_ignore_ascii_case("exit") || name.eq_ignore_ascii_case("quit") {
        return Ok(Said::Exit);
    }
    if name.eq_ignore_ascii_case("usage") {
        app.terminal
            .print(&limits::report(&session.usage().await?))?;
        return Ok(Said::Done(None));
    }
    let known = session.commands().await?;
    if name.eq_ignore_ascii_case("help") {
        terminal.print(&help(&known))?;
        return Ok(Said::Done(None));
    }
    let is_known = known.iter().any(|command| {
        let aliases = command.aliases.iter().flatten();
        let mut names = aliases.chain([&command.name]);
        names.any(|known| known.eq_ignore_ascii_case(name))
    });
    // A word like `/etc` is more likely a path.
    if !is_known && std::path::Path::new("/").join(name).exists() {
        return Ok(Said::Send(line.into()));
    }
    let invoked = match invoke(app, session, name, input).await {
        // The daemon names the command that was most likely meant.
        Err(error) if !is_known => bail!(
            "{}. To send a message that begins with a slash, write two: //{name}",
            sanitize(&error.to_string())
        ),
        invoked => invoked?,
    };
    match invoked {
        Invoked::Text { text, .. } => {
            terminal.print(&format!("{}\n", sanitize(text.trim_end())))?;
            Ok(Said::Done(None))
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

/// Runs a command. Its parts may ask for permissions meanwhile. Ctrl-C stops it.
async fn invoke(app: &App, session: &Session, name: &str, input: &str) -> anyhow::Result<Invoked> {
    let invoking = session.invoke_command(name, input);
    tokio::pin!(invoking);
    loop {
        tokio::select! {
            biased;
            invoked = &mut invoking => return Ok(invoked?),
            () = app.terminal.interrupted() => bail!("/{name} was stopped"),
            question = app.turnstile.next() => question.release(),
        }
    }
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
        let cases = [
            ("/help", Some(("help", ""))),
            ("  /plan  the work ", Some(("plan", "the work"))),
            ("/model gpt-5 high", Some(("model", "gpt-5 high"))),
            ("hello /help", None),
            ("//help", None),
            ("/tmp/x is too big", None),
            ("/notes.txt is old", None),
            ("/", None),
            ("/ what", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(command(line), expected, "{line}");
        }
    }
}
