//! The arguments of `loop tasks`.

use clap::{Args as Group, Subcommand};

/// The session whose tasks a subcommand acts on.
#[derive(Debug, Clone, Group)]
pub(crate) struct TaskScope {
    /// The session of the task, as for `loop tasks`.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TasksVerb {
    /// Print what an agent has answered so far, or the recent output of a command.
    ///
    /// The answers go to stdout, one after the other. Facts about the task go to stderr: its
    /// status, the file to which a running agent writes its steps, the session that holds its whole
    /// conversation (for `loop events`), and its worktree.
    Read {
        /// Its id, its name, or a beginning of the id that no other task has.
        id: String,
        /// Wait until a running agent has answered, but at most this long.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        wait: Option<std::time::Duration>,
        #[command(flatten)]
        scope: TaskScope,
    },
    /// Send a message to an agent.
    ///
    /// A running agent gets the message at its next step. An agent that has answered or ended
    /// starts on it at once, in the background and with its whole conversation. Read its answer
    /// with `loop tasks read ID --wait 60`.
    Send {
        /// Its id, its name, or a beginning of the id that no other task has.
        id: String,
        /// What to do; `-` reads it from stdin.
        message: String,
        #[command(flatten)]
        scope: TaskScope,
    },
    /// Stop a task and whatever it has started.
    ///
    /// The earlier answers of an agent can still be read, and it still takes messages.
    Stop {
        /// Its id, its name, or a beginning of the id that no other task has.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Stop all agents and commands of the session.
        #[arg(long, conflicts_with = "id")]
        all: bool,
        #[command(flatten)]
        scope: TaskScope,
    },
    /// Move what the session waits for to the background.
    ///
    /// The task goes on, and the conversation goes on without waiting for it; the session is told
    /// when it ends.
    Promote {
        /// Its id, its name, or a beginning of the id that no other task has; without it, the one
        /// that the session waits for.
        id: Option<String>,
        #[command(flatten)]
        scope: TaskScope,
    },
}

pub(super) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds"))?;
    std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("one cannot wait {text} seconds"))
}
