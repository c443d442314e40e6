//! The subcommands, one file each.

mod attach;
mod autopilot;
mod context;
mod daemon;
mod doctor;
mod events;
mod hooks;
mod mcp;
mod prompt;
mod ps;
mod queue;
mod resume;
mod rewind;
mod sessions;
mod skills;
mod tasks;
mod trust;
mod worktrees;

use std::collections::BTreeMap;

use crate::app::App;
use crate::args::{Args, HooksVerb, Verb};
use crate::outcome::{Outcome, WrongUsage};
use crate::stdin::with_stdin;
use prompt::Shows;

pub(crate) async fn run(args: Args, env: BTreeMap<String, String>) -> anyhow::Result<Outcome> {
    refuse_unused(&args)?;
    let app = App::new(args.options, env)?;
    match args.command {
        Some(Verb::Sessions) => sessions::run(&app).await,
        Some(Verb::Ps) => ps::run(&app).await,
        Some(Verb::Worktrees { what }) => worktrees::run(&app, what).await,
        Some(Verb::Hooks {
            what: Some(HooksVerb::Test { file, event }),
            ..
        }) => hooks::test(&app, &file, event).await,
        Some(Verb::Hooks {
            what: Some(HooksVerb::Accept),
            ..
        }) => hooks::accept(&app).await,
        Some(Verb::Hooks {
            what: Some(HooksVerb::Lift { session, attached }),
            ..
        }) => hooks::lift(&app, session.as_deref(), attached).await,
        Some(Verb::Hooks {
            directory,
            what: None,
        }) => hooks::run(&app, directory.as_deref()).await,
        Some(Verb::Mcp { what }) => mcp::run(&app, what).await,
        Some(Verb::Skills { directory }) => skills::run(&app, directory.as_deref()).await,
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
        Some(Verb::Autopilot { session, what }) => {
            autopilot::run(&app, session.as_deref(), what).await
        }
        Some(Verb::Rewind {
            session,
            to,
            files,
            conversation,
            undo,
            partly,
            dry_run,
        }) => {
            let wanted = rewind::Wanted {
                to,
                mode: rewind::mode(files, conversation),
                undo,
                partly,
                dry_run,
            };
            rewind::run(&app, session.as_deref(), wanted).await
        }
        Some(Verb::Context(wanted)) => context::run(&app, &wanted).await,
        Some(Verb::Abort { session }) => queue::abort(&app, session.as_deref()).await,
        Some(Verb::Resume { id, prompt }) => resume::run(&app, &id, prompt).await,
        Some(Verb::Attach { id }) => attach::run(&app, &id).await,
        Some(Verb::Events { id, follow }) => events::run(&app, &id, follow).await,
        Some(Verb::Daemon { what }) => daemon::run(&app, what).await,
        Some(Verb::Doctor) => doctor::run(&app).await,
        None => {
            let shows = if args.only_answer.is_some() {
                Shows::Answer
            } else {
                Shows::Everything
            };
            let prompt = prompt_or_stdin(&app, args.only_answer.or(args.prompt))?;
            prompt::run(&app, prompt, args.resume_last, shows).await
        }
    }
}

/// Refuses options that the subcommand would ignore.
fn refuse_unused(args: &Args) -> anyhow::Result<()> {
    let Some(verb) = &args.command else {
        return Ok(());
    };
    let continues = matches!(verb, Verb::Resume { .. });
    let joins = continues || matches!(verb, Verb::Attach { .. });
    let takes_model = joins || matches!(verb, Verb::Doctor);
    let options = &args.options;
    let given = [
        ("--continue", args.resume_last, false),
        ("--model", options.model.is_some(), takes_model),
        ("--agent", options.agent.is_some(), joins),
        ("--mode", options.mode.is_some(), joins),
        ("--allow-tool", !options.allow_tool.is_empty(), joins),
        ("--deny-tool", !options.deny_tool.is_empty(), joins),
        ("--yolo", options.yolo, joins),
        ("--no-hooks", options.no_hooks, continues),
    ];
    for (option, is_given, is_used) in given {
        if is_given && !is_used {
            return Err(WrongUsage::error(format!(
                "{option} has no meaning for this subcommand; give it to `loop`, `loop resume` or `loop attach`"
            )));
        }
    }
    let of_run = options.run.first_given().or(options.limits.first_given());
    if let Some(option) = of_run.filter(|_| !continues) {
        return Err(WrongUsage::error(format!(
            "{option} has no meaning for this subcommand; give it to `loop` or `loop resume`"
        )));
    }
    if args.only_answer.is_some() {
        return Err(WrongUsage::error(
            "--prompt has no meaning for a subcommand; give it to `loop`",
        ));
    }
    Ok(())
}

/// Returns the prompt with what stdin adds; `None` for a conversation.
fn prompt_or_stdin(app: &App, prompt: Option<String>) -> anyhow::Result<Option<String>> {
    let prompt = with_stdin(prompt, |line| app.terminal.notice(line))?;
    let is_empty = |prompt: &String| prompt.trim().is_empty();
    if prompt.as_ref().is_some_and(is_empty) {
        return Err(WrongUsage::error(
            "the prompt is empty: say what to do, as in loop \"…\"",
        ));
    }
    Ok(prompt)
}

/// Returns a line about a file that cannot be used, or not in full.
fn problem_line(problem: &loopd_sdk::FileProblem) -> String {
    let line = problem.line.map(|line| format!(":{line}"));
    let line = line.unwrap_or_default();
    crate::terminal::sanitize(&format!("{}{line}: {}", problem.file, problem.message))
}
