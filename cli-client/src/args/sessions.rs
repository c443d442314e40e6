//! The arguments of `loop sessions`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SessionsVerb {
    /// List the sessions, the one changed last first.
    List {
        /// Only those of this directory.
        #[arg(long)]
        here: bool,
    },
    /// Find sessions by what was said in them, and by their names and directories.
    ///
    /// For example `loop sessions search "connection reset"`. Upper and lower case do not matter. Each line
    /// has the session and the newest message with the text.
    Search {
        /// What to look for.
        text: String,
        /// How many sessions at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
    },
    /// Give a session a name.
    ///
    /// For example `loop sessions rename 01a1e2b4-f141 "the release"`.
    Rename {
        /// Its id, or the beginning of it.
        id: String,
        name: String,
    },
    /// Delete sessions with their logs, files and sub-agents.
    ///
    /// On a terminal you are asked; elsewhere --yes is needed. What is deleted cannot be brought back;
    /// `loop sessions export` makes a copy first.
    Delete {
        /// Their ids, or the beginnings of them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Write a session to a file, to go on with it in another home.
    ///
    /// The file has the log, the todos, the plan and the session's own files, such as long outputs. It has no
    /// keys and no tokens; what else is left out is printed. For example:
    ///
    ///   loop sessions export 01a1e2b4-f141 --output work.jsonl
    ///   scp work.jsonl other: && ssh other 'cd project && loop sessions import ~/work.jsonl'
    ///
    /// What you have allowed in the session is not allowed in the other home: it is asked again there.
    Export {
        /// Its id, or the beginning of it.
        id: String,
        /// The file, which must not exist; `-` is stdout. Without it, session-ID.jsonl in this directory.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Leave out the session's own files.
        #[arg(long)]
        without_files: bool,
    },
    /// Make a session of a file that `loop sessions export` wrote.
    ///
    /// The session works in this directory from now on: `loop -c` goes on with it. It keeps its id; a session
    /// that is here already is never overwritten.
    Import {
        /// The file; `-` is stdin.
        file: PathBuf,
        /// The directory that the session works in, instead of this one.
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
        /// Give it a new id, so that it can be beside the one that it was exported from.
        #[arg(long)]
        copy: bool,
    },
    /// Delete sessions that have not changed for a while.
    ///
    /// Sessions with a name are kept unless --named is given, and so are those that are in memory. For
    /// example `loop sessions prune --older-than 30 --dry-run` shows what would go.
    Prune {
        /// For how many days they have not changed.
        #[arg(long, value_name = "DAYS")]
        older_than: u32,
        /// Only show what would be deleted, and how much it takes.
        #[arg(long)]
        dry_run: bool,
        /// Delete those with a name, too.
        #[arg(long)]
        named: bool,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Make a session from the history of another one.
    ///
    /// The source stays as it is. For example `loop sessions fork 01a1e2b4-f141 --to 2 --name "other way"`
    /// ends before the second message. Prints the id of the new session.
    Fork {
        /// Its id, or the beginning of it.
        id: String,
        /// The message before which it ends: a number of `loop rewind`, or the beginning of the message's id.
        /// Without it, the whole history.
        #[arg(long, value_name = "POINT")]
        to: Option<String>,
        /// The name of the new session.
        #[arg(long)]
        name: Option<String>,
    },
}
