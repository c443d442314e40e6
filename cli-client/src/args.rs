//! The command line.

mod context_options;
mod daemon;
mod mcp;
mod run_options;
mod sessions;
mod tasks;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use loopd_sdk::Mode;

pub(crate) use context_options::ContextOptions;
pub(crate) use daemon::DaemonVerb;
pub(crate) use mcp::{McpAdd, McpVerb};
pub(crate) use run_options::RunOptions;
pub(crate) use sessions::SessionsVerb;
pub(crate) use tasks::{TaskScope, TasksVerb};

/// Talk to an AI agent that works in this directory.
///
/// The agent lives in a background daemon, which is started when none runs: its sessions survive
/// this program, and several programs can attend one.
///
/// A prompt can come from stdin, too: `loop < file`. With a prompt, what is piped in is added to it:
/// `cat log | loop "explain"`.
///
/// In a conversation, lines that begin with a slash are commands; /help lists them, /exit leaves.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a permission was needed and nobody was there to
/// ask, 4 a limit was reached or the answer is not complete, 5 the agent is blocked and says what it
/// needs, 124 timed out, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "loop", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What to do; without it, a conversation on the terminal, or what comes on stdin.
    pub(crate) prompt: Option<String>,

    /// Do this, and print nothing but the answer when all work is done, also that in the background.
    ///
    /// Errors and warnings go to stderr. With --json, events are printed as they come.
    #[arg(
        short = 'p',
        long = "prompt",
        value_name = "PROMPT",
        conflicts_with = "prompt"
    )]
    pub(crate) only_answer: Option<String>,

    /// Continue the last session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume_last: bool,

    #[command(flatten)]
    pub(crate) options: Options,

    #[command(subcommand)]
    pub(crate) command: Option<Verb>,
}

/// The options of every subcommand.
#[derive(Debug, Clone, Group)]
pub(crate) struct Options {
    /// Print events as JSON, one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The model that answers; else LOOPD_MODEL, else what the daemon finds configured.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The agent that answers: one of your agent files, or `build` or `plan`, which are built in.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Switch the session to a mode: `interactive` asks before anything is changed that you have not
    /// allowed; `plan` changes nothing until you approve a plan, whatever else is allowed; `autopilot`
    /// lets the agent decide what it would ask you.
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,

    #[command(flatten)]
    pub(crate) run: RunOptions,

    /// Allow something in this session without asking: `shell`, `shell(git status)`, `shell(git:*)`,
    /// `look`, `write`, `write(PATH)`, `read(PATH)`, `url(URL)`, `mcp(SERVER)`, `custom-tool(NAME)`.
    ///
    /// `look` allows commands that only look at files of the session's directories, at git and at the
    /// machine; every new session has this rule.
    ///
    /// `shell` allows every command. A rule with a command covers plain commands only: no
    /// redirection, no substitution. `shell(git status)` covers `git status` with harmless options,
    /// `shell(git:*)` every subcommand of git with harmless options. Options that run other programs,
    /// overwrite files or destroy something still ask; to allow one of them, spell it out:
    /// `shell(git push --force:*)`.
    ///
    /// No rule covers writing to files that make a program run something, such as those in `.git`,
    /// `.claude` and `.vscode`, `.mcp.json` and the start-up files of shells, nor, except for `shell`,
    /// a command in a shell that an earlier command may have changed. Such files may be in folders
    /// and archives, so `shell(cp:*)` does not cover `cp -r`, and `shell(mv:*)` no folders.
    #[arg(long, global = true, value_name = "RULE", value_parser = crate::allow::parse)]
    pub(crate) allow_tool: Vec<loopd_sdk::PermissionRule>,

    /// Deny something in this session, whatever else allows it, also --yolo: the same rules as
    /// --allow-tool, except `look`.
    ///
    /// `shell(rm)` denies every command line that runs rm, however it is wrapped; `read(PATH)` and
    /// `write(PATH)` deny files and folders to all tools. What a command finds by itself, as `grep -r x .`
    /// and `cat "$x"` do, is not known before it runs.
    #[arg(long, global = true, value_name = "RULE", value_parser = crate::allow::parse_denied)]
    pub(crate) deny_tool: Vec<loopd_sdk::PermissionRule>,

    /// Do not run the hooks of your files and of this project. Hooks of whoever owns the machine run.
    #[arg(long, global = true)]
    pub(crate) no_hooks: bool,

    #[command(flatten)]
    pub(crate) limits: crate::limits::LimitOptions,

    /// Allow everything without asking, also writing to `.git` and other protected files.
    #[arg(long, global = true)]
    pub(crate) yolo: bool,
}

impl Options {
    /// Whether the command line asks for autopilot mode.
    pub(crate) fn asks_for_autopilot(&self) -> bool {
        self.run.autopilot || self.mode == Some(ModeName::Autopilot)
    }
}

/// The modes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    Interactive,
    Plan,
    Autopilot,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Interactive => Self::Interactive,
            ModeName::Plan => Self::Plan,
            ModeName::Autopilot => Self::Autopilot,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the sessions, the one changed last first; find, name, delete, copy and carry them.
    ///
    /// For example `loop sessions`, `loop sessions search milk`, `loop sessions export 01a1e2b4-f141`.
    Sessions {
        #[command(subcommand)]
        what: Option<SessionsVerb>,
    },
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
    /// The list shows the state of each (`in use`: an agent works in it; `kept`: its agent has ended
    /// and left changes; `leftover`: a daemon or an agent died and left it) and what its removal
    /// would lose.
    Worktrees {
        #[command(subcommand)]
        what: Option<WorktreesVerb>,
    },
    /// List the hooks for sessions in a directory.
    ///
    /// Hooks are commands, addresses and prompts that run at points of a session: before a tool runs,
    /// when the agent stops, and so on. They are read from files of whoever owns the machine (policy),
    /// of yours, of the project and of plugins. The list shows each one's file and line, its event,
    /// what it is for, what it runs, and whether it runs or why not. Below it stands what is wrong
    /// with the files.
    ///
    /// Hooks of a project run only if you trust the project with them: see `loop trust`.
    #[command(args_conflicts_with_subcommands = true)]
    Hooks {
        /// The directory; without it, this one.
        directory: Option<std::path::PathBuf>,
        #[command(subcommand)]
        what: Option<HooksVerb>,
    },
    /// List the skills for sessions in a directory.
    ///
    /// A skill is a folder with a SKILL.md: instructions for one kind of task. Models load one when it
    /// fits, and you can use one as a slash command. The list shows each one's name, where it comes from
    /// and what it is for, and why one is not used. Below it stands what is wrong with the files.
    ///
    /// Skills of a project are used only if you trust the project with them: see `loop trust`.
    Skills {
        /// The directory; without it, this one.
        directory: Option<std::path::PathBuf>,
    },
    /// List the MCP servers for sessions here, add and remove your own, try one, read its log.
    ///
    /// MCP servers are programs and services that bring tools. They are read from your own file, which
    /// `add` and `remove` change, from files of the project and from plugins. Servers of a project are
    /// used only if you trust the project with them: see `loop trust`.
    Mcp {
        #[command(subcommand)]
        what: Option<McpVerb>,
    },
    /// Show what a folder would bring into its sessions, and trust it with exactly that.
    ///
    /// A project can bring hooks, agents with powers of their own, MCP servers and permissions.
    /// Hooks, and the powers of its agents, are used only if you trust the project with them. What is
    /// new or changed later, also in a script that a hook runs, is not used until you look again.
    ///
    /// On a terminal you are asked. Elsewhere, print what there is with --show, and repeat the hash
    /// that it prints: `loop trust --yes HASH`. If something has changed in between, nothing is
    /// trusted.
    ///
    /// With --json, the list is one JSON object.
    Trust {
        /// A folder of the project; without it, this one.
        directory: Option<std::path::PathBuf>,
        /// Only show what the folder would bring, and the hash of it.
        #[arg(long, conflicts_with = "yes")]
        show: bool,
        /// Trust the folder without asking, if what it brings has this hash.
        #[arg(long, value_name = "HASH")]
        yes: Option<String>,
    },
    /// Show the tasks of a session, or act on one of them.
    ///
    /// Tasks are the sub-agents that a session has started, those that they have started in turn,
    /// and running commands. Each line shows the task's id, its type (the type of the agent, or
    /// `shell`), its status, its tool calls, tokens and time, and what it is doing or its result.
    ///
    /// `running`: it is working; `idle`: it has answered and takes more messages (`loop tasks send`);
    /// `completed`, `failed`, `cancelled`: it has ended. An agent that has ended takes messages, too,
    /// and continues where it was.
    ///
    /// On a terminal the list stays and follows what happens until nothing runs any more or you
    /// press Ctrl-C, which stops nothing. Elsewhere, and with --once, it is printed once.
    ///
    /// This does not disturb the session or its other clients.
    #[command(args_conflicts_with_subcommands = true)]
    Tasks {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory, or, when there is none, all sessions in memory that have tasks.
        session: Option<String>,
        /// Print the list once, also on a terminal.
        #[arg(long)]
        once: bool,
        /// With --json: keep printing a line for each change, until no task runs any more.
        #[arg(long, conflicts_with = "once")]
        follow: bool,
        #[command(subcommand)]
        what: Option<TasksVerb>,
    },
    /// Show what waits in a session, or change it.
    ///
    /// Messages that are sent while the session works wait in its queue. The list shows the position
    /// of each, from 1 on, its id and its text. ITEM is a position or an id, or the beginning of one.
    Queue {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        #[arg(long, global = true, value_name = "SESSION")]
        session: Option<String>,
        #[command(subcommand)]
        what: Option<QueueVerb>,
    },
    /// Show what the autopilot of a session does, pause it, or let it go on.
    ///
    /// In autopilot mode an agent that stops before its task is complete is told to go on. While the
    /// autopilot is paused it is not, and the session waits for a message.
    Autopilot {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        #[arg(long, global = true, value_name = "SESSION")]
        session: Option<String>,
        #[command(subcommand)]
        what: Option<AutopilotVerb>,
    },
    /// Take a session back to one of your messages, with the files that its tools changed.
    ///
    /// Without --to it lists the messages, the last one first: its number, how many files changed from
    /// there on, and its text. POINT is such a number, or the id of the message or the beginning of it.
    /// The message itself and all that came after it leave the conversation; the log keeps them.
    ///
    /// A file is restored only if it is as a tool left it. If somebody else changed one since, nothing
    /// is touched, unless --partly is given. Files that git ignores, large files, links and what is
    /// outside of the working directory are not restored after commands.
    ///
    /// --undo takes the last rewind back. Running agents and commands have to be stopped first.
    Rewind {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// The message to go back to.
        #[arg(long, value_name = "POINT", conflicts_with = "undo")]
        to: Option<String>,
        /// Take back the files only.
        #[arg(long, conflicts_with = "conversation")]
        files: bool,
        /// Take back the conversation only.
        #[arg(long)]
        conversation: bool,
        /// Undo the last rewind.
        #[arg(long)]
        undo: bool,
        /// Restore what can be restored, and leave alone what somebody else changed.
        #[arg(long)]
        partly: bool,
        /// Only show what would be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Show what takes how much of the context of a session.
    ///
    /// A bar shows how much of what the model takes is used. Below it stand the parts by size and the
    /// largest messages, in tokens of the model.
    ///
    /// When the context fills up, a summary takes the place of the oldest messages. --dropped lists the
    /// messages that the model does not read any more, the oldest first; the log keeps them.
    Context(ContextOptions),
    /// Stop what runs in a session, whoever started it.
    ///
    /// Ctrl-C in a conversation stops only the turn of your own message; this stops any turn. Messages
    /// that wait stay and run next.
    Abort {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        session: Option<String>,
    },
    /// Continue a session.
    Resume {
        /// Its id, or the beginning of it.
        id: String,
        /// What to do; without it, a conversation.
        prompt: Option<String>,
    },
    /// Join a session: see what happened and what happens, answer what it asks, and send messages.
    ///
    /// What you type is sent to the session, as in a conversation; /help lists the commands. Ctrl-C
    /// and Ctrl-D leave and stop nothing.
    ///
    /// If another client answers a question while you type here, you are told so, and your line goes
    /// to the prompt, where you can edit it and send it as a message.
    ///
    /// What is piped in is sent as one message: `echo "go on" | loop attach ID`. The command then
    /// ends when the session has answered and is idle. A question stays open for a client on a
    /// terminal. With </dev/null it only watches.
    Attach {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Print the events of a session.
    Events {
        /// Its id, or the beginning of it.
        id: String,
        /// Keep printing events as they happen.
        #[arg(short, long)]
        follow: bool,
    },
    /// Start, stop or show the daemon.
    Daemon {
        #[command(subcommand)]
        what: DaemonVerb,
    },
    /// Check that everything is in place, and say how to fix what is not.
    ///
    /// No model is asked anything, because that may cost money. With --request one short message is sent to
    /// the model that a new session would use, through the daemon and with your key, and the answer is shown.
    Doctor {
        /// Send one real request to the model.
        #[arg(long)]
        request: bool,
    },
    /// Show the todo list of a session.
    ///
    /// `[ ]` is to be done, `[>]` is worked on, `[x]` is done, `[-]` was given up. For example
    /// `loop todos --session 01a1e2b4`.
    Todos {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// List the models that a new session can use; the one that it would use is marked.
    ///
    /// For example `loop models`, and then `loop --model NAME`. If no provider is configured, it says what
    /// could be used: keys in variables, and model servers on this machine.
    Models,
    /// List the agents of sessions in a directory: those of files, and those that are built in.
    ///
    /// For example `loop agents`, and then `loop --agent NAME`. Below the list stands what is wrong with files.
    Agents {
        /// The directory; without it, this one.
        directory: Option<std::path::PathBuf>,
    },
    /// Show the file of settings, what it sets and what is wrong with it.
    ///
    /// For example `loop config --all` lists everything that can be set, with its default.
    Config {
        /// List everything that can be set.
        #[arg(long)]
        all: bool,
    },
    /// Print a script that completes commands and options in your shell.
    ///
    /// For example, for bash: `loop completions bash > ~/.local/share/bash-completion/completions/loop`;
    /// for zsh: `loop completions zsh > ~/.zfunc/_loop` (with `fpath+=~/.zfunc` before `compinit`);
    /// for fish: `loop completions fish > ~/.config/fish/completions/loop.fish`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of this command and its subcommands into a directory.
    ///
    /// For example `loop man ~/.local/share/man/man1`, and then `man loop-sessions`.
    Man {
        /// The directory, which must exist.
        directory: std::path::PathBuf,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum AutopilotVerb {
    /// Do not tell the agent to go on when it stops. What runs goes on.
    Pause,
    /// Let it go on. An agent that has stopped meanwhile goes on at once.
    Continue,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksVerb {
    /// Run the hooks of a file for an event once, with a payload of made-up values.
    ///
    /// Prints what each hook was told and what it answered. It ends with 1 if a hook failed. Nothing
    /// of a session is touched, and the file need not be trusted: you chose it.
    Test {
        /// The file.
        file: std::path::PathBuf,
        /// The event, for example preToolUse or PreToolUse.
        event: String,
    },
    /// Accept your own files of hooks as they are now.
    ///
    /// A command of an agent may change or delete the files of hooks in your home. So a guard of yours
    /// that was changed, moved, deleted or turned off has you asked about what it guarded. This says
    /// that the change is yours: what is there now counts, and guards that are gone are given up.
    Accept,
    /// Let a session go on without the apps whose hooks guard it and that are gone.
    ///
    /// A session that an app opened with hooks runs no tool while no connection answers them: calls
    /// wait. This lets them run, until the app comes again. Apps that are attached go on guarding, and
    /// hooks of files are still asked. It ends with 1 if every guard is attached.
    Lift {
        /// The id of the session, or the beginning of it; without it the last session of this
        /// directory.
        session: Option<String>,
        /// Lift the guards of apps that are attached, too: they are asked while they are there, and
        /// nobody waits for them when they are gone.
        #[arg(long)]
        attached: bool,
    },
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

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum QueueVerb {
    /// List what waits.
    List,
    /// Move an item to another position.
    Move {
        item: String,
        /// The new position, from 1 on.
        to: usize,
    },
    /// Change the text of a message that waits.
    Edit { item: String, text: String },
    /// Queue a message, last or at a position; prints its id.
    Insert {
        text: String,
        /// The position, from 1 on.
        #[arg(long, value_name = "POSITION")]
        at: Option<usize>,
    },
    /// Remove an item.
    Remove { item: String },
    /// Let a waiting message join the running turn.
    SendNow { item: String },
    /// Take a message back, if no model can have read it.
    Withdraw { item: String },
    /// Remove everything that waits, whoever sent it.
    Clear,
}
