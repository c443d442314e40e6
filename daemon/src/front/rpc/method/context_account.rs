//! What takes how much of the context of a session.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use loopd_proto::params::command::Invoked;
use loopd_proto::params::context::{
    Attribution, AttributionCategories, AttributionEntry, AttributionResult, CompactionCount,
    ContextInfo, ContextInfoParams, ContextInfoResult, Heaviest, HeaviestParams, HeavyMessage,
    RecomputeParams, Recomputed,
};
use loopd_proto::params::session::Of;

use super::builtin::{Call, text};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::account::ContextAccount;
use crate::session::view::View;
use loopd_kernel::context_parts::{self, MessageTokens, PartSource, PartTokens};
use loopd_kernel::context_window::ContextWindow;

/// How many of the largest messages are listed, unless a caller wants another number, and at most.
const USUAL_MESSAGES: u32 = 10;
const MOST_MESSAGES: u32 = 1_000;

/// The ids of the parts that are not of the conversation.
const SYSTEM: &str = "systemPrompt";
const INSTRUCTIONS: &str = "customInstructions";
const DEFINITIONS: &str = "toolDefinitions";

pub(super) async fn info(
    context: Context,
    params: ContextInfoParams,
) -> Result<ContextInfoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let services = context.app.services.clone();
    let info = session.view(move |view| {
        let account = view.account(&services, params.selected_model.as_deref())?;
        let mut window = account.window;
        if params.prompt_token_limit > 0 {
            // What is given is what a request may have, beside its answer.
            window = ContextWindow {
                limit: params.prompt_token_limit,
                output: None,
            };
        }
        let output = match params.output_token_limit {
            0 => account.window.output.unwrap_or(0),
            given => given,
        };
        let bounds = Bounds::of(&account, window, output);
        Some(ContextInfo {
            model_name: account.model,
            system_tokens: account.size.system,
            conversation_tokens: account.size.conversation,
            tool_definitions_tokens: account.size.tools,
            mcp_tools_tokens: account.mcp_tools,
            total_tokens: account.size.total(),
            prompt_token_limit: window.prompt_limit(),
            compaction_threshold: bounds.compaction,
            limit: bounds.limit,
            buffer_tokens: bounds.buffer,
        })
    });
    let context_info = info.await?;
    Ok(ContextInfoResult { context_info })
}

/// What a request may have, and from where on room is made.
struct Bounds {
    compaction: u64,
    limit: u64,
    buffer: u64,
}

impl Bounds {
    fn of(account: &ContextAccount, window: ContextWindow, output: u64) -> Self {
        let prompt = window.prompt_limit();
        Self {
            compaction: account.rules.background_at(window),
            limit: prompt.saturating_add(output),
            buffer: output.saturating_add(prompt - account.rules.blocking_at(window)),
        }
    }
}

pub(super) async fn recompute(
    context: Context,
    params: RecomputeParams,
) -> Result<Recomputed, RpcError> {
    let session = context.session(&params.session_id)?;
    let services = context.app.services.clone();
    let size = session.view(move |view| {
        let account = view.account(&services, Some(&params.model_id));
        account.map(|account| account.size).unwrap_or_default()
    });
    let size = size.await?;
    Ok(Recomputed {
        total_tokens: size.system + size.conversation,
        messages_token_count: size.conversation,
        system_token_count: size.system,
    })
}

pub(super) async fn attribution(
    context: Context,
    params: Of,
) -> Result<AttributionResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let services = context.app.services.clone();
    let attribution = session.view(move |view| {
        let account = view.account(&services, None)?;
        Some(attributed(view, account))
    });
    let context_attribution = attribution.await?;
    Ok(AttributionResult {
        context_attribution,
    })
}

fn attributed(view: &View<'_>, account: ContextAccount) -> Attribution {
    let output = account.window.output.unwrap_or(0);
    let bounds = Bounds::of(&account, account.window, output);
    let total = account.size.total();
    let chosen = view.state.model.is_some();
    let free = bounds.limit.saturating_sub(total);
    let mut entries = fixed_entries(&account);
    let parts = context_parts::parts(view.state);
    entries.extend(scaled(parts, &account).map(|(source, part)| entry(&source, part)));
    Attribution {
        total_tokens: total,
        model_source: if chosen { "selected" } else { "default" }.to_owned(),
        prompt_token_limit: account.window.prompt_limit(),
        limit: bounds.limit,
        buffer_tokens: bounds.buffer,
        compaction_threshold: bounds.compaction,
        categories: AttributionCategories {
            system_prompt: account.size.system - account.instructions.min(account.size.system),
            custom_instructions: account.instructions.min(account.size.system),
            system_tools: account.size.tools.saturating_sub(account.mcp_tools),
            mcp_tools: account.mcp_tools,
            messages: account.size.conversation,
            free_space: free.saturating_sub(bounds.buffer),
            buffer: bounds.buffer,
        },
        entries,
        compactions: CompactionCount {
            count: view.state.compaction.count,
        },
        model_id: account.model,
    }
}

/// Returns the entries of what is in every request.
fn fixed_entries(account: &ContextAccount) -> Vec<AttributionEntry> {
    let system = |id: &str, label: &str, tokens| AttributionEntry {
        kind: "system".to_owned(),
        id: id.to_owned(),
        label: label.to_owned(),
        tokens,
        parent_id: None,
        attributes: None,
    };
    let instructions = account.instructions.min(account.size.system);
    let mut entries = vec![system(
        SYSTEM,
        "System prompt",
        account.size.system - instructions,
    )];
    if instructions > 0 {
        entries.push(system(INSTRUCTIONS, "Custom instructions", instructions));
    }
    entries.push(system(DEFINITIONS, "Tool definitions", account.size.tools));
    entries.extend(account.tools.iter().map(|(name, tokens)| AttributionEntry {
        kind: "toolDefinition".to_owned(),
        id: format!("toolDefinition:{name}"),
        label: name.clone(),
        tokens: *tokens,
        parent_id: Some(DEFINITIONS.to_owned()),
        attributes: None,
    }));
    entries
}

/// Returns the parts of the conversation in tokens of the model.
fn scaled(
    parts: BTreeMap<PartSource, PartTokens>,
    account: &ContextAccount,
) -> impl Iterator<Item = (PartSource, PartTokens)> {
    let factor = account.factor;
    parts.into_iter().map(move |(source, part)| {
        let tokens = times(part.tokens, factor);
        (source, PartTokens { tokens, ..part })
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "numbers of tokens are far below 2^53 and not negative"
)]
fn times(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).round() as u64
}

fn entry(source: &PartSource, part: PartTokens) -> AttributionEntry {
    let (kind, name, label) = named(source);
    let is_message = matches!(source, PartSource::User | PartSource::Assistant);
    let messages = ("messageCount".to_owned(), part.messages.to_string());
    AttributionEntry {
        id: format!("{kind}:{name}"),
        kind: kind.to_owned(),
        label,
        tokens: part.tokens,
        parent_id: None,
        // Some clients expect none with what is no source of its own.
        attributes: (!is_message).then(|| [messages].into()),
    }
}

/// Returns the kind, the name and the label of a source.
fn named(source: &PartSource) -> (&'static str, &str, String) {
    match source {
        PartSource::User => ("message", "user", "User messages".to_owned()),
        PartSource::Assistant => ("message", "assistant", "Model messages".to_owned()),
        PartSource::Tool(name) => ("tool", name, name.clone()),
        PartSource::Skill(name) => ("skill", name, format!("skill: {name}")),
        PartSource::Subagent(name) => ("subagent", name, format!("agent: {name}")),
    }
}

pub(super) async fn heaviest(
    context: Context,
    params: HeaviestParams,
) -> Result<Heaviest, RpcError> {
    let session = context.session(&params.session_id)?;
    let services = context.app.services.clone();
    let most = params.limit.unwrap_or(USUAL_MESSAGES).min(MOST_MESSAGES);
    if most == 0 {
        return Err(RpcError::InvalidParams(
            "limit: 0 messages are none; give a number of 1 or more, or leave it out".to_owned(),
        ));
    }
    let found = session.view(move |view| {
        let Some(account) = view.account(&services, None) else {
            return (0, Vec::new());
        };
        let messages = context_parts::heaviest(view.state, most as usize);
        let messages = messages
            .into_iter()
            .map(|message| heavy(&message, account.factor));
        (account.size.total(), messages.collect())
    });
    let (total_tokens, messages) = found.await?;
    Ok(Heaviest {
        total_tokens,
        messages,
    })
}

fn heavy(message: &MessageTokens, factor: f64) -> HeavyMessage {
    let (role, source) = match &message.source {
        PartSource::User => ("user", "user".to_owned()),
        PartSource::Assistant => ("assistant", "assistant".to_owned()),
        PartSource::Tool(name) => ("tool", format!("tool: {name}")),
        PartSource::Skill(name) => ("tool", format!("skill: {name}")),
        PartSource::Subagent(name) => ("tool", format!("agent: {name}")),
    };
    HeavyMessage {
        id: format!("message-{}", message.seq.0),
        label: format!("{source}: {}", message.shown),
        role: role.to_owned(),
        tokens: times(message.tokens, factor),
    }
}

/// How many characters the bar of the context has, and how many parts and messages are listed.
const BAR: u64 = 40;
const MOST_LISTED: usize = 12;

/// The slash command: a bar of what is used, the parts by size, the largest messages.
pub(super) async fn command(call: Call<'_>) -> Result<Invoked, RpcError> {
    let services = call.context.app.services.clone();
    let shown = call.session.view(move |view| {
        let account = view.account(&services, None)?;
        let heaviest = context_parts::heaviest(view.state, MOST_LISTED / 2);
        let factor = account.factor;
        let shown = shown(&attributed(view, account));
        Some((shown, heaviest, factor))
    });
    let Some((mut lines, heaviest, factor)) = shown.await? else {
        return Ok(text("Nothing was sent to a model yet.".to_owned()));
    };
    if !heaviest.is_empty() {
        lines.push_str("\nLargest messages:\n");
    }
    for message in heaviest {
        let tokens = times(message.tokens, factor);
        // Writing to a string cannot fail.
        writeln!(lines, "- {tokens}: {}", message.shown).ok();
    }
    Ok(text(lines))
}

/// Writes how much is used by what.
fn shown(attribution: &Attribution) -> String {
    let (used, limit) = (
        attribution.total_tokens,
        attribution.prompt_token_limit.max(1),
    );
    let full = (used * BAR / limit).min(BAR);
    let bar: String = (0..BAR)
        .map(|at| if at < full { '█' } else { '░' })
        .collect();
    let mut lines = format!(
        "{bar} {}%\n{used} of {limit} tokens, {}\n",
        used * 100 / limit,
        attribution.model_id
    );
    let threshold = attribution.compaction_threshold;
    let count = attribution.compactions.count;
    // Writing to a string cannot fail.
    writeln!(
        lines,
        "compacted {count} times; next from {threshold} tokens on\n"
    )
    .ok();
    let mut entries: Vec<_> = attribution.entries.iter().collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.tokens));
    let parts = entries.into_iter().filter(|entry| entry.tokens > 0);
    for entry in parts.take(MOST_LISTED) {
        writeln!(
            lines,
            "- {}: {} ({})",
            entry.tokens, entry.label, entry.kind
        )
        .ok();
    }
    lines
}
