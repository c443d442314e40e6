//! The subcommands, one file each.

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

use crate::app::App;
use crate::args::{Args, Verb};
use crate::outcome::Outcome;

/// The maximum length of a prompt from stdin, in bytes.
const LONGEST_PROMPT: u64 = 4 * 1024 * 1024;

pub(crate) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let app = App::new(args.options)?;
    match args.command {
        Some(Verb::Sessions) => sessions::run(&app).await,
        Some(Verb::Ps) => ps::run(&app).await,
        Some(Verb::Worktrees { what }) => worktrees::run(&app, what).await,
        Some(Verb::Tasks {
            session,
            once,
            follow,
            what,
        }) => match what {
            None => tasks::show(&app, session.as_deref(), once, follow).await,
            Some(what) => tasks::act(&app, what).await,
        },
        Some(Verb::Resume { id, prompt }) => resume::run(&app, &id, prompt).await,
        Some(Verb::Attach { id }) => attach::run(&app, &id).await,
        Some(Verb::Events { id, follow }) => events::run(&app, &id, follow).await,
        Some(Verb::Daemon { what }) => daemon::run(&app, what).await,
        Some(Verb::Doctor) => doctor::run(&app).await,
        None => prompt::run(&app, prompt_or_stdin(args.prompt)?, args.resume_last).await,
    }
}

/// Returns the prompt argument, or else stdin; `None` if stdin is a terminal: a conversation.
fn prompt_or_stdin(prompt: Option<String>) -> anyhow::Result<Option<String>> {
    if prompt.is_some() || std::io::stdin().is_terminal() {
        return Ok(prompt);
    }
    let text = read_stdin()?;
    if text.trim().is_empty() {
        bail!("nothing to do: give a prompt, as in loop \"…\", or pipe one in");
    }
    Ok(Some(text))
}

fn read_stdin() -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    std::io::stdin()
        .take(LONGEST_PROMPT)
        .read_to_string(&mut text)?;
    Ok(text)
}
