//! The daemon's own slash commands. Each takes effect at once. The list holds no command that does
//! not work yet.

use std::borrow::Cow;
use std::fmt::Write as _;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::fact::NamedBy;
use loopd_proto::event::task::TaskOutcome;
use loopd_proto::params::agent::{ListParams, SelectParams};
use loopd_proto::params::command::{CommandInfo, CommandInput, CommandKind, Invoked};
use loopd_proto::params::model::SwitchParams;
use loopd_proto::params::session::Of;
use loopd_proto::run_scope::RunLimits;
use loopd_proto::session::Mode;

use super::commands::AllCommands;
use super::{agent, builtin_work, clear, compaction, context_account, model, research};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::Command;
use loopd_kernel::state::State;

/// The most models or tasks that a text lists.
pub(super) const MOST_LINES: usize = 50;

/// A slash command of the daemon.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    description: &'static str,
    input: Option<CommandInput>,
    run: for<'a> fn(Call<'a>) -> BoxFuture<'a, Result<Invoked, RpcError>>,
}

/// One call of a command: the caller, the session and the text after the command's name.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) context: &'a Context,
    pub(super) session: &'a SessionHandle,
    pub(super) input: &'a str,
    /// How much the work may take that the command begins by itself.
    pub(super) limits: Option<RunLimits>,
}

const fn words(hint: &'static str) -> CommandInput {
    CommandInput {
        hint: Cow::Borrowed(hint),
        required: false,
    }
}

/// Every command, in the order in which users see them.
pub(super) const ALL: &[Builtin] = &[
    Builtin {
        name: "help",
        description: "Lists the commands",
        input: None,
        run: |call| help(call).boxed(),
    },
    Builtin {
        name: "model",
        description: "Shows the model that answers, or chooses another one",
        input: Some(words("[model] [reasoning effort]")),
        run: |call| choose_model(call).boxed(),
    },
    Builtin {
        name: "agents",
        description: "Lists the agents of this session, or lets one of them answer",
        input: Some(words("[agent | none]")),
        run: |call| agents(call).boxed(),
    },
    Builtin {
        name: "tasks",
        description: "Lists what goes on in the background",
        input: None,
        run: |call| tasks(call).boxed(),
    },
    Builtin {
        name: "plan",
        description: "Goes to plan mode: nothing is changed before there is a plan",
        input: Some(words("[what to plan]")),
        run: |call| switch_mode(call, Mode::Plan).boxed(),
    },
    Builtin {
        name: "autopilot",
        description: "Turns autopilot mode on or off: the agent works until the task is done",
        input: Some(words("[on | off | what to do]")),
        run: |call| builtin_work::autopilot(call).boxed(),
    },
    Builtin {
        name: "interactive",
        description: "Goes back to working step by step with you",
        input: Some(words("[what to do]")),
        run: |call| switch_mode(call, Mode::Interactive).boxed(),
    },
    Builtin {
        name: "review",
        description: "Lets an agent review changes",
        input: Some(words("[what to review]")),
        run: |call| std::future::ready(Ok(builtin_work::review(call))).boxed(),
    },
    Builtin {
        name: "research",
        description: "Lets agents research a topic, and writes a report with sources",
        input: Some(CommandInput {
            hint: Cow::Borrowed("<topic>"),
            required: true,
        }),
        run: |call| research::invoke(call).boxed(),
    },
    Builtin {
        name: "subconscious",
        description: "Lists the notes for later sessions, or lets an agent boil this session down to such notes",
        input: Some(words("[run]")),
        run: |call| builtin_work::subconscious(call).boxed(),
    },
    Builtin {
        name: "fleet",
        description: "Lets several agents work on the todos at the same time",
        input: Some(words("[what to do]")),
        run: |call| builtin_work::fleet(call).boxed(),
    },
    Builtin {
        name: "todos",
        description: "Lists the todos of this session",
        input: None,
        run: |call| builtin_work::todos(call).boxed(),
    },
    Builtin {
        name: "rename",
        description: "Names this session",
        input: Some(CommandInput {
            hint: Cow::Borrowed("<name>"),
            required: true,
        }),
        run: |call| rename(call).boxed(),
    },
    Builtin {
        name: "usage",
        description: "Shows what this session used so far",
        input: None,
        run: |call| usage(call).boxed(),
    },
    Builtin {
        name: "compact",
        description: "Replaces the conversation by a summary, to free up room in the context",
        input: Some(words("[what the summary should dwell on]")),
        run: |call| compaction::command(call).boxed(),
    },
    Builtin {
        name: "clear",
        description: "Clears the conversation: the model begins anew, the log keeps everything",
        input: Some(words("[what to do]")),
        run: |call| clear::command(call).boxed(),
    },
    Builtin {
        name: "context",
        description: "Shows how much of the context is used, and by what",
        input: None,
        run: |call| context_account::command(call).boxed(),
    },
];

/// Returns the names of all commands.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().map(|builtin| builtin.name).collect()
}

pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    let mut all = ALL.iter();
    all.find(|builtin| builtin.name.eq_ignore_ascii_case(name))
}

impl Builtin {
    pub(super) fn describe(&self) -> CommandInfo {
        CommandInfo {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            kind: CommandKind::Builtin,
            input: self.input.clone(),
            allow_during_agent_execution: true,
            aliases: None,
            source: None,
            path: None,
            unavailable: None,
        }
    }

    pub(super) async fn run(
        &self,
        context: &Context,
        session: &SessionHandle,
        input: &str,
        limits: Option<RunLimits>,
    ) -> Result<Invoked, RpcError> {
        if self.input.is_none() && !input.is_empty() {
            return Err(RpcError::Failed(format!(
                "/{} takes no words after its name",
                self.name
            )));
        }
        (self.run)(Call {
            context,
            session,
            input,
            limits,
        })
        .await
    }
}

impl Call<'_> {
    pub(super) fn of(self) -> Of {
        Of {
            session_id: self.session.id().clone(),
        }
    }
}

pub(super) fn text(lines: String) -> Invoked {
    Invoked::Text {
        text: lines.trim_end().to_owned(),
        markdown: true,
        incomplete: None,
        begun: None,
    }
}

pub(super) fn completed(message: String) -> Invoked {
    Invoked::Completed {
        message: Some(message),
        message_id: None,
        begun: None,
    }
}

/// Adds a line. Writing to a string cannot fail.
pub(super) fn line(lines: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(lines, "{words}").ok();
}

async fn help(call: Call<'_>) -> Result<Invoked, RpcError> {
    let mut lines = String::new();
    for command in AllCommands::of(call.context, call.session).await?.list() {
        let hint = command.input.as_ref().map_or("", |input| &input.hint);
        let name = format!("/{} {hint}", command.name);
        let what = Some(command.description).filter(|what| !what.is_empty());
        let what = what.map(|what| format!(": {what}")).unwrap_or_default();
        let off = command
            .unavailable
            .map(|_| " (does not run yet: see its file's trust)");
        let off = off.unwrap_or_default();
        line(
            &mut lines,
            format_args!("- `{}`{what}{off}", name.trim_end()),
        );
    }
    Ok(text(lines))
}

async fn choose_model(call: Call<'_>) -> Result<Invoked, RpcError> {
    let mut words = call.input.split_whitespace();
    let Some(wanted) = words.next() else {
        return show_model(call).await;
    };
    let params = SwitchParams {
        session_id: call.session.id().clone(),
        model_id: wanted.to_owned(),
        reasoning_effort: words.next().map(str::to_owned),
        reasoning_summary: None,
        context_tier: None,
        model_capabilities: None,
    };
    if words.next().is_some() {
        return Err(RpcError::Failed(
            "/model takes the name of a model and a reasoning effort, nothing more".to_owned(),
        ));
    }
    let switched = model::switch(call.context.clone(), params).await?;
    let name = switched.model_id;
    Ok(completed(format!("{name} answers from the next call on.")))
}

async fn show_model(call: Call<'_>) -> Result<Invoked, RpcError> {
    let current = model::current(call.context.clone(), call.of()).await?;
    let mut lines = String::new();
    match current.model_id {
        Some(name) => line(&mut lines, format_args!("{name} answers.")),
        None => line(&mut lines, format_args!("No model was chosen yet.")),
    }
    match model::list_of_session(call.context.clone(), call.of()).await {
        Ok(models) => {
            line(&mut lines, format_args!("\nYou can choose among:\n"));
            for model in models.list.iter().take(MOST_LINES) {
                line(&mut lines, format_args!("- `{}`", model.id));
            }
            let more = models.list.len().saturating_sub(MOST_LINES);
            if more > 0 {
                line(&mut lines, format_args!("- and {more} more"));
            }
        }
        Err(error) => line(
            &mut lines,
            format_args!("\nThe models cannot be listed: {error}"),
        ),
    }
    Ok(text(lines))
}

async fn agents(call: Call<'_>) -> Result<Invoked, RpcError> {
    match call.input {
        "" => {}
        "none" => {
            agent::deselect(call.context.clone(), call.of()).await?;
            return Ok(completed("The usual agent answers.".to_owned()));
        }
        name => {
            let params = SelectParams {
                session_id: call.of().session_id,
                name: name.to_owned(),
            };
            agent::select(call.context.clone(), params).await?;
            return Ok(completed(format!(
                "{name} answers from the next message on."
            )));
        }
    }
    let wanted = ListParams {
        session_id: call.of().session_id,
        include_built_in_agents: true,
        include_prompt: false,
    };
    let found = agent::list(call.context.clone(), wanted).await?;
    let mut lines = String::new();
    for agent in found.agents {
        let what = agent.description;
        line(&mut lines, format_args!("- `{}`: {what}", agent.name));
    }
    if lines.is_empty() {
        lines.push_str("This session has no agents besides the usual one.");
    }
    Ok(text(lines))
}

async fn tasks(call: Call<'_>) -> Result<Invoked, RpcError> {
    let lines = call.session.state(|state: &State| {
        let mut lines = String::new();
        for task in state.tasks.iter().take(MOST_LINES) {
            let status = match task.ending().map(|ending| ending.outcome) {
                None if task.is_idle() => "waits for messages",
                None => "runs",
                Some(TaskOutcome::Completed) => "is done",
                Some(TaskOutcome::Failed) => "failed",
                Some(TaskOutcome::Cancelled) => "was stopped",
            };
            let what = &task.description;
            line(&mut lines, format_args!("- `{}` {status}: {what}", task.id));
        }
        lines
    });
    let mut lines = lines.await?;
    if lines.is_empty() {
        lines.push_str("Nothing goes on in the background.");
    }
    Ok(text(lines))
}

pub(super) async fn switch_mode(call: Call<'_>, mode: Mode) -> Result<Invoked, RpcError> {
    call.session
        .command(Command::SetMode {
            mode,
            expected: None,
        })
        .await?;
    let name = match mode {
        Mode::Interactive => "interactive",
        Mode::Plan => "plan",
        Mode::Autopilot => "autopilot",
    };
    if call.input.is_empty() {
        return Ok(completed(format!("The session is in {name} mode.")));
    }
    Ok(Invoked::AgentPrompt {
        prompt: call.input.to_owned(),
        display_prompt: format!("/{name} {}", call.input),
        mode: Some(mode),
        notice: None,
        run_scope: None,
    })
}

async fn rename(call: Call<'_>) -> Result<Invoked, RpcError> {
    if call.input.is_empty() {
        return Err(RpcError::Failed("/rename needs a name".to_owned()));
    }
    let name = call.input.to_owned();
    let by = NamedBy::User;
    call.session.command(Command::SetName { name, by }).await?;
    Ok(completed(format!("The session is called {}.", call.input)))
}

async fn usage(call: Call<'_>) -> Result<Invoked, RpcError> {
    let totals = call.session.state(|state| state.totals.clone()).await?;
    let mut lines = String::new();
    line(
        &mut lines,
        format_args!("- messages: {}", totals.user_requests),
    );
    for (model, metrics) in &totals.models {
        let (calls, tokens) = (metrics.requests.count, &metrics.usage);
        let (read, wrote) = (tokens.input_tokens, tokens.output_tokens);
        let what = format_args!("- `{model}`: {calls} calls, {read} tokens in, {wrote} tokens out");
        line(&mut lines, what);
    }
    let changes = &totals.code_changes;
    let (added, removed) = (changes.lines_added, changes.lines_removed);
    line(
        &mut lines,
        format_args!("- lines: {added} added, {removed} removed"),
    );
    Ok(text(lines))
}
