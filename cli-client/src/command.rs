//! The verbs, one file each.

mod attach;
mod daemon;
mod doctor;
mod events;
mod prompt;
mod ps;
mod resume;
mod sessions;
mod tasks;
mod worktrees;

use std::io::IsTerminal;

use anyhow::bail;

use crate::args::{Args, Verb};
use crate::open::Desk;
use crate::outcome::Outcome;

/// The longest prompt that is read from stdin.
const LONGEST_PROMPT: u64 = 4 * 1024 * 1024;

pub(crate) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let desk = Desk::new(args.options)?;
    match args.command {
        Some(Verb::Sessions) => sessions::run(&desk).await,
        Some(Verb::Ps) => ps::run(&desk).await,
        Some(Verb::Worktrees { what }) => worktrees::run(&desk, what).await,
        Some(Verb::Tasks {
            session,
            once,
            follow,
            what,
        }) => match what {
            None => tasks::show(&desk, session.as_deref(), once, follow).await,
            Some(what) => tasks::act(&desk, what).await,
        },
        Some(Verb::Resume { id, prompt }) => resume::run(&desk, &id, prompt).await,
        Some(Verb::Attach { id }) => attach::run(&desk, &id).await,
        Some(Verb::Events { id, follow }) => events::run(&desk, &id, follow).await,
        Some(Verb::Daemon { what }) => daemon::run(&desk, what).await,
        Some(Verb::Doctor) => doctor::run(&desk).await,
        None => prompt::run(&desk, wanted(args.prompt)?, args.resume_last).await,
    }
}

/// The prompt as given, or as piped in; `None` means a conversation.
fn wanted(prompt: Option<String>) -> anyhow::Result<Option<String>> {
    if prompt.is_some() || std::io::stdin().is_terminal() {
        return Ok(prompt);
    }
    let text = piped()?;
    if text.trim().is_empty() {
        bail!("nothing to do: give a prompt, as in loop \"…\", or pipe one in");
    }
    Ok(Some(text))
}

/// What comes on stdin.
fn piped() -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    std::io::stdin()
        .take(LONGEST_PROMPT)
        .read_to_string(&mut text)?;
    Ok(text)
}
