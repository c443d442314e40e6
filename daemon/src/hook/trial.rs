//! Runs a hook once for a person who wants to try it, outside of any session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::SessionId;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::background::BackgroundHooks;
use super::context::{HookAgent, HookContext};
use super::effect;
use super::handlers::{FileHook, Hooks};
use super::input::HookInput;
use super::output::HookOutput;
use super::transcript::Transcript;
use super::vocabulary::{OddMember, odd_members};
use crate::discovery::hooks::HookDefinition;
use crate::launch::Launch;
use crate::mcp::McpCell;
use crate::publish::Audience;
use crate::redaction::Redaction;
use crate::services::Services;
use crate::trust;

/// How a hook that was tried ended.
#[derive(Debug, Clone)]
pub struct HookTrial {
    /// What the hook was told.
    pub payload: Value,
    /// What it answered; `None` if it had nothing to say.
    pub output: Option<Value>,
    /// Why it has no answer. As a guard it denies then, unless it says `"onFailure": "continue"`.
    pub error: Option<String>,
    /// What its answer, or its failure, would come to in a session; `None` if that is nothing.
    pub effect: Option<String>,
    /// What of its answer does not do what it seems to ask for.
    pub notices: Vec<String>,
    pub time: Duration,
}

/// Runs the hook with a payload of made-up values.
pub async fn try_out(
    services: &Arc<Services>,
    launch: &Arc<Launch>,
    definition: HookDefinition,
    cwd: &Path,
) -> HookTrial {
    let session = SessionId::new("sample");
    let background = BackgroundHooks::default();
    let context = HookContext {
        hooks: Hooks::default(),
        present: watch::Sender::default().subscribe(),
        agent: HookAgent::of_sample(definition.kind),
        cwd: cwd.to_string_lossy().into_owned(),
        is_planning: false,
        mcp: McpCell::default(),
        replaced: Arc::default(),
        project: trust::project_root(cwd),
        launch: Some(launch.clone()),
        transcript: Transcript::empty(session.clone()),
        audience: Audience::new(session.clone()),
        tip: None,
        services: services.clone(),
        cancel: CancellationToken::new(),
        progress: Arc::default(),
        redaction: Redaction::default(),
        background: background.handle(),
        session,
    };
    let clock = &services.clock;
    let input = HookInput::sample(definition.kind);
    let payload = input.for_file(definition.form, &context, clock.now());
    let kind = definition.kind;
    let hook = Arc::new(FileHook::new(definition));
    let started = clock.instant();
    let result = context.act(&hook, &payload).await;
    let result = result.map(|mut output| {
        output.odd = odd_members(kind, &output);
        output
    });
    HookTrial {
        effect: effect::of(&hook.definition, &result),
        notices: result
            .iter()
            .flat_map(|output| output.odd.iter().map(OddMember::told))
            .collect(),
        time: clock.instant().duration_since(started),
        output: result.as_ref().ok().and_then(HookOutput::shown),
        error: result.err().map(|failure| failure.cause().to_owned()),
        payload,
    }
}
