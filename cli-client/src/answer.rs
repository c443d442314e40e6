//! Answers permission requests and questions of a session: asks on the terminal, or denies if
//! nobody can be asked.

mod permission;
mod plan;
mod remedy;
mod unasked;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopd_sdk::proto::session::Mode;
use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{
    PermissionAsked, PermissionDecision, PermissionRequest, SessionConfig, UserInput,
    UserInputResponse,
};

use self::remedy::remedy;
pub(crate) use self::unasked::DeniedUnasked;
use crate::terminal::{Style, Terminal};
use crate::turnstile::Turnstile;

/// How many lines of a diff are shown.
const DIFF_LINES: usize = 20;

/// Whether the session is in plan mode.
#[derive(Clone, Default)]
pub(crate) struct InPlanMode(Arc<AtomicBool>);

impl InPlanMode {
    pub(crate) fn set(&self, mode: Mode) {
        self.0.store(mode == Mode::Plan, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds handlers that ask on the terminal, or that deny if nobody can be asked.
pub(crate) fn with_handlers(
    config: SessionConfig,
    terminal: &Terminal,
    turnstile: &Turnstile,
    denied_unasked: &DeniedUnasked,
    planning: &InPlanMode,
) -> SessionConfig {
    if !terminal.can_ask() {
        let (terminal, planning) = (terminal.clone(), planning.clone());
        let denied_unasked = denied_unasked.clone();
        return config.on_permission(move |asked| {
            let what = request_line(&asked);
            let remedy = remedy(&asked, planning.is_on());
            let denied = format!(
                "loop: {what} was denied: it needs a permission and nobody is there to ask; {remedy}"
            );
            denied_unasked.asked(&terminal, asked.request_id, &what, denied);
            async { PermissionDecision::UserNotAvailable {} }
        });
    }
    let at = (terminal.clone(), turnstile.clone());
    let (other, planner) = (at.clone(), at.clone());
    let unanswered = denied_unasked.clone();
    config
        .on_permission(move |asked| {
            let (terminal, turnstile) = at.clone();
            let unanswered = unanswered.clone();
            async move {
                turnstile.pass().await;
                let decision = decide(&terminal, &asked).await;
                if let PermissionDecision::UserNotAvailable {} = decision {
                    let what = request_line(&asked);
                    let denied = format!("loop: {what} was denied: the question was not answered");
                    unanswered.asked(&terminal, asked.request_id, &what, denied);
                }
                decision
            }
        })
        .on_user_input(move |asked| {
            let (terminal, turnstile) = other.clone();
            async move {
                turnstile.pass().await;
                respond(&terminal, &asked).await
            }
        })
        .on_plan(move |plan| {
            let (terminal, turnstile) = planner.clone();
            async move {
                turnstile.pass().await;
                plan::decide(&terminal, &plan).await
            }
        })
}

async fn decide(terminal: &Terminal, asked: &PermissionAsked) -> PermissionDecision {
    if let Some(chat) = terminal.chat() {
        return match chat.decide(permission::text(asked)).await {
            Some(decision) => decision,
            // The conversation was left; the question stays open.
            None => std::future::pending().await,
        };
    }
    let request = &asked.permission_request;
    let what = terminal.styled(Style::Bold, &request_line(asked));
    let mut question = format!("{} {what}\n", terminal.styled(Style::Bold, "?"));
    if let Some(warning) = warning(request) {
        question.push_str(&terminal.styled(Style::Bad, &format!("  {}\n", for_person(warning))));
    }
    if let Some(reason) = remedy::reason(asked) {
        question.push_str(&terminal.styled(Style::Dim, &format!("  {}\n", for_person(&reason))));
    }
    if let PermissionRequest::Write { diff, .. } = request {
        for line in for_person(diff).lines().take(DIFF_LINES) {
            question.push_str(&terminal.styled(Style::Dim, &format!("  {line}\n")));
        }
        let more = for_person(diff).lines().count().saturating_sub(DIFF_LINES);
        if more > 0 {
            question.push_str(&terminal.styled(Style::Dim, &format!("  … {more} more lines\n")));
        }
    }
    let only_this = asked
        .asked_because
        .as_ref()
        .map(|because| because.session_approval);
    let for_session = only_this.unwrap_or_else(|| can_hold_for_session(request));
    let prompt = match (for_session, only_this) {
        (true, Some(_)) => {
            "  yes, always in this session for exactly this, or no (and why)? [y/a/n] "
        }
        (true, None) => "  yes, always in this session, or no (and why)? [y/a/n] ",
        (false, _) => "  yes or no (and why)? [y/n] ",
    };
    if let (true, None, Some(covered)) = (for_session, only_this, always_covers(request)) {
        let line = format!("  always covers {}\n", for_person(&covered));
        question.push_str(&terminal.styled(Style::Dim, &line));
    }
    loop {
        let Some(line) = terminal.ask(&question, prompt).await else {
            return PermissionDecision::UserNotAvailable {};
        };
        match permission::read(&line, for_session) {
            Ok(decision) => return decision,
            Err(why) => terminal.notice(&terminal.styled(Style::Dim, &format!("  {why}"))),
        }
    }
}

async fn respond(terminal: &Terminal, asked: &UserInput) -> UserInputResponse {
    let question = for_person(&asked.question);
    let mut text = format!(
        "{} {}\n",
        terminal.styled(Style::Bold, "?"),
        terminal.styled(Style::Bold, &question)
    );
    let choices = asked.choices.as_deref().unwrap_or_default();
    for (number, choice) in choices.iter().enumerate() {
        text.extend([
            "  ",
            &(number + 1).to_string(),
            ". ",
            &for_person(choice),
            "\n",
        ]);
    }
    let Some(line) = terminal.ask(&text, "  > ").await else {
        // The question stays open for another client or a later one.
        return terminal.left_unanswered().await;
    };
    let line = line.trim();
    let number = line.parse::<usize>().ok();
    let chosen = number.and_then(|number| choices.get(number.checked_sub(1)?));
    UserInputResponse {
        answer: chosen.cloned().unwrap_or_else(|| line.to_owned()),
        was_freeform: chosen.is_none() && !choices.iter().any(|choice| choice == line),
    }
}

/// Describes a permission request and its agent in one line.
fn request_line(asked: &PermissionAsked) -> String {
    let what = describe(&asked.permission_request);
    match &asked.agent_id {
        Some(agent) => format!("agent {}: {what}", for_person(agent.as_str())),
        None => what,
    }
}

/// Describes a permission request in one line.
pub(crate) fn describe(request: &PermissionRequest) -> String {
    let text = match request {
        PermissionRequest::Shell {
            full_command_text, ..
        } => format!("run `{full_command_text}`"),
        PermissionRequest::Write {
            file_name,
            other_files,
            ..
        } => std::iter::once(file_name)
            .chain(other_files)
            .fold("write".to_owned(), |text, file| format!("{text} {file}")),
        PermissionRequest::Read { path, .. } => format!("read {path}"),
        PermissionRequest::Url { url, .. } => format!("fetch {url}"),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => format!("call {tool_name} of {server_name}"),
        PermissionRequest::CustomTool { tool_name, .. }
        | PermissionRequest::Hook { tool_name, .. } => format!("call {tool_name}"),
    };
    for_person(&text)
}

/// Says what "always in this session" covers: the rules that the daemon makes of it.
fn always_covers(request: &PermissionRequest) -> Option<String> {
    match request {
        PermissionRequest::Shell { commands, .. } => {
            let names = commands
                .iter()
                .map(|it| format!("shell({})", it.identifier));
            let names: Vec<String> = names.collect();
            (!names.is_empty()).then(|| {
                let names = names.join(", ");
                format!("{names}, with harmless options")
            })
        }
        PermissionRequest::Write { .. } => Some(
            "writing to every file in the session's directories, protected files excepted"
                .to_owned(),
        ),
        PermissionRequest::Read { .. } => {
            Some("reading every file in the session's directories".to_owned())
        }
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => Some(format!(
            "mcp({server_name}/{tool_name}), with any arguments"
        )),
        PermissionRequest::CustomTool { tool_name, .. } => {
            Some(format!("custom-tool({tool_name}), with any arguments"))
        }
        PermissionRequest::Url { .. } | PermissionRequest::Hook { .. } => None,
    }
}

fn can_hold_for_session(request: &PermissionRequest) -> bool {
    match request {
        PermissionRequest::Shell {
            can_offer_session_approval,
            ..
        }
        | PermissionRequest::Write {
            can_offer_session_approval,
            ..
        } => *can_offer_session_approval,
        PermissionRequest::Read { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. } => true,
        PermissionRequest::Url { .. } | PermissionRequest::Hook { .. } => false,
    }
}

fn warning(request: &PermissionRequest) -> Option<&str> {
    match request {
        PermissionRequest::Shell { warning, .. } => warning.as_deref(),
        PermissionRequest::Hook { hook_message, .. } => hook_message.as_deref(),
        PermissionRequest::Write { .. }
        | PermissionRequest::Read { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. } => None,
    }
}
