//! The terminal client of loopd: from arguments to an exit code.

mod allow;
mod amount;
mod answer;
mod app;
mod args;
mod chat;
mod command;
mod limits;
mod model;
mod outcome;
mod own_environment;
mod render;
mod slash;
mod stdin;
mod terminal;
mod turnstile;
mod usage;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;

use args::Args;
use outcome::{Outcome, WRONG_USAGE, WrongUsage};
use terminal::Terminal;

fn main() -> ExitCode {
    let args = Args::parse();
    let env = own_environment::take();
    let terminal = Terminal::new(&env);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return report(&terminal, &error.into()),
    };
    let outcome = runtime.block_on(command::run(args, env));
    // A thread may still wait for a line; it must not keep the process alive, nor the terminal in its
    // mode.
    runtime.shutdown_background();
    terminal::restore::restore();
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => report(&terminal, &error),
    }
}

fn report(terminal: &Terminal, error: &anyhow::Error) -> ExitCode {
    let closed = error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe);
    // A reader that closed the pipe has read all it wanted: that is no error.
    if !closed {
        terminal.notice(&format!("loop: {error:#}"));
    }
    if error.is::<WrongUsage>() {
        return WRONG_USAGE.into();
    }
    Outcome::Failed.into()
}
