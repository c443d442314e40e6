//! The command line.

use clap::{Args as Group, Parser, Subcommand};

/// Talk to an AI agent that works in this directory.
///
/// The agent lives in a background daemon, which is started when none runs: its sessions survive
/// this program, and several programs can attend one.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a permission was needed and nobody was there to
/// ask, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "loop", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What to do; without it, a conversation on the terminal, or what comes on stdin.
    pub(crate) prompt: Option<String>,

    /// Go on with the last session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume_last: bool,

    #[command(flatten)]
    pub(crate) options: Options,

    #[command(subcommand)]
    pub(crate) command: Option<Verb>,
}

/// What holds for every verb.
#[derive(Debug, Clone, Group)]
pub(crate) struct Options {
    /// Print events as JSON, one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The model that answers; else LOOPD_MODEL, else what the daemon finds configured.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Allow something in this session without asking: `shell`, `shell(git status)`, `shell(git:*)`,
    /// `write`, `write(PATH)`, `read(PATH)`, `url(URL)`, `mcp(SERVER)`, `custom-tool(NAME)`.
    #[arg(long, global = true, value_name = "RULE", value_parser = crate::allow::parse)]
    pub(crate) allow_tool: Vec<loopd_sdk::PermissionRule>,

    /// Allow everything without asking.
    #[arg(long, global = true)]
    pub(crate) yolo: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the sessions, the one changed last first.
    Sessions,
    /// List the commands that the daemon runs as processes, the oldest first.
    Ps,
    /// List the worktrees of agents, or remove one.
    ///
    /// An agent that is started with `isolation: worktree` works in a copy of the repository's
    /// current commit (a git worktree) in the home of the daemon, so that it does not touch your
    /// files. When it ends, the copy is removed if nothing would be lost with it. If the agent
    /// left changes or commits, it is kept for you to look at: go there and use git as usual, for
    /// example `git diff`, `git log`, or `git switch -c NAME` to put a branch on its commits.
    ///
    /// The list says of each who needs it (`in use`: an agent works in it; `kept`: its agent has
    /// ended and left changes; `leftover`: a daemon or an agent died and left it) and what would be
    /// lost with it.
    Worktrees {
        #[command(subcommand)]
        what: Option<WorktreesVerb>,
    },
    /// Go on with a session.
    Resume {
        /// Its id, or the beginning of it.
        id: String,
        /// What to do; without it, a conversation.
        prompt: Option<String>,
    },
    /// Join a session: see what happened and what happens, and answer what it asks.
    Attach {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Print the events of a session.
    Events {
        /// Its id, or the beginning of it.
        id: String,
        /// Go on with what happens.
        #[arg(short, long)]
        follow: bool,
    },
    /// Look after the daemon.
    Daemon {
        #[command(subcommand)]
        what: DaemonVerb,
    },
    /// Check that everything is in place, and say how to fix what is not.
    Doctor,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Start it, unless it runs.
    Start,
    /// End it; sessions are kept.
    Stop {
        /// End it even though it works.
        #[arg(long)]
        force: bool,
    },
    /// Tell what it does; fails when it does not run.
    Status,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum WorktreesVerb {
    /// Remove a worktree from the disk and from its repository.
    ///
    /// One that an agent works in is never removed. One with changes is removed only with --force;
    /// branches that were made in it stay in the repository, everything else in it is gone.
    Remove {
        /// Its id, as `loop worktrees` shows it.
        id: String,
        /// Remove it with the changes in it.
        #[arg(long)]
        force: bool,
    },
}
