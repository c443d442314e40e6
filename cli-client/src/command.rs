//! The subcommands, one file each.

mod attach;
mod daemon;
mod doctor;
mod events;
mod hooks;
mod prompt;
mod ps;
mod queue;
mod resume;
mod sessions;
mod tasks;
mod trust;
mod worktrees;

use crate::app::App;
use crate::args::{Args, HooksVerb, Verb};
use crate::outcome::Outcome;
use crate::stdin::with_stdin;

pub(crate) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let app = App::new(args.options)?;
    match args.command {
        Some(Verb::Sessions) => sessions::run(&app).await,
        Some(Verb::Ps) => ps::run(&app).await,
        Some(Verb::Worktrees { what }) => worktrees::run(&app, what).await,
        Some(Verb::Hooks {
            what: Some(HooksVerb::Test { file, event }),
            ..
        }) => hooks::test(&app, &file, event).await,
        Some(Verb::Hooks {
            what: Some(HooksVerb::Lift { session }),
            ..
        }) => hooks::lift(&app, session.as_deref()).await,
        Some(Verb::Hooks {
            directory,
            what: None,
        }) => hooks::run(&app, directory.as_deref()).await,
        Some(Verb::Trust {
            directory,
            show,
            yes,
        }) => trust::run(&app, directory.as_deref(), show, yes.as_deref()).await,
        Some(Verb::Tasks {
            session,
            once,
            follow,
            what,
        }) => match what {
            None => tasks::show(&app, session.as_deref(), once, follow).await,
            Some(what) => tasks::act(&app, what).await,
        },
        Some(Verb::Queue { session, what }) => queue::run(&app, session.as_deref(), what).await,
        Some(Verb::Abort { session }) => queue::abort(&app, session.as_deref()).await,
        Some(Verb::Resume { id, prompt }) => resume::run(&app, &id, prompt).await,
        Some(Verb::Attach { id }) => attach::run(&app, &id).await,
        Some(Verb::Events { id, follow }) => events::run(&app, &id, follow).await,
        Some(Verb::Daemon { what }) => daemon::run(&app, what).await,
        Some(Verb::Doctor) => doctor::run(&app).await,
        None => prompt::run(&app, prompt_or_stdin(&app, args.prompt)?, args.resume_last).await,
    }
}

/// Returns the prompt with what stdin adds; `None` for a conversation.
fn prompt_or_stdin(app: &App, prompt: Option<String>) -> anyhow::Result<Option<String>> {
    with_stdin(prompt, |line| app.terminal.notice(line))
}

/// Returns a line about a file that cannot be used, or not in full.
fn problem_line(problem: &loopd_sdk::FileProblem) -> String {
    let line = problem.line.map(|line| format!(":{line}"));
    let line = line.unwrap_or_default();
    crate::terminal::sanitize(&format!("{}{line}: {}", problem.file, problem.message))
}
