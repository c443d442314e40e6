//! Prepares user messages: their text with attachments, the model, and the system message.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_proto::event::agent::Profile;
use loopd_proto::event::fact::PendingMessage;
use loopd_proto::event::skill::SkillInvoked;
use loopd_proto::event::turn::Delivered;
use loopd_proto::id::SessionId;
use loopd_proto::run_scope::ScopedSkill;
use loopd_proto::session::{Mode, SectionAction, SessionOptions};
use loopd_proto::time::Timestamp;

use super::attachments;
use super::instructions::InstructionLookup;
use super::prompt::{self, PromptInput, Sections};
use super::route::Route;
use super::skills;
use crate::client::Client;
use crate::discovery::Host;
use crate::discovery::hooks::HookKind;
use crate::hook::{HookContext, PromptEnd};
use crate::picture;
use crate::skill::SkillView;
use crate::subagent::definitions::{self, ProjectTrust, RosterInput};
use crate::subagent::memory;
use loopd_kernel::command::{BlockedMessage, ModelFailure, Prepared, PreparedMessage};
use loopd_kernel::hook::PROMPT_BLOCKED;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::texts;

/// How long a client may take to rewrite sections.
const TRANSFORM_WAIT: Duration = Duration::from_secs(30);

pub struct PrepareInput {
    pub messages: Vec<PendingMessage>,
    pub now: Timestamp,
    pub cwd: String,
    pub session: SessionId,
    pub options: SessionOptions,
    pub agent: Option<String>,
    pub mode: Mode,
    pub planning: Planning,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    /// The profile, if the session is a sub-agent.
    pub profile: Option<Profile>,
    /// A system message that is used unchanged.
    pub system: Option<String>,
    /// Client tools that the model was told about and that are gone.
    pub tools_gone: Vec<String>,
    pub tool_names: Vec<String>,
    /// Clients that may rewrite sections of the system message.
    pub transformers: Vec<Arc<dyn Client>>,
    pub route: Route,
    pub hooks: Option<PromptHooks>,
    pub skills: SkillView,
    /// The skill that the session was started to carry out, if its first message is prepared.
    pub task_skill: Option<ScopedSkill>,
    pub instructions: InstructionLookup,
    /// The files whose instructions the conversation has already.
    pub given_instructions: Vec<String>,
}

/// What people should be told about files.
#[derive(Debug, Default)]
pub struct PrepareNotices {
    /// What is wrong with the skills of the agent.
    pub skills: Vec<String>,
    /// What is wrong with instructions.
    pub instructions: Vec<String>,
    /// The attachments that the model does not get.
    pub attachments: Vec<String>,
}

/// The hooks around prompts.
pub struct PromptHooks {
    pub context: HookContext,
    /// How the session begins, if the hooks have not been told.
    pub begins: Option<&'static str>,
    /// Is set when the hooks at the start have let the session begin; until then they are asked again.
    pub let_begin: Arc<AtomicBool>,
}

/// Prepares the messages; changes nothing outside its result.
pub async fn prepare(mut input: PrepareInput) -> Result<(Prepared, PrepareNotices), ModelFailure> {
    let hooks = input.hooks.take();
    let mut said = PromptEnd::default();
    let blocked = match &hooks {
        Some(hooks) => hooked_prompts(hooks, &mut input.messages, &mut said).await?,
        None => Vec::new(),
    };
    let model = match input.model.clone().or_else(|| input.options.model.clone()) {
        Some(model) => model,
        None => input.route.default_model().await?,
    };
    let mut messages = Vec::with_capacity(input.messages.len());
    let mut loaded = Vec::new();
    let mut missing = Vec::new();
    for (index, message) in input.messages.iter().enumerate() {
        let mut text = format!("<current_datetime>{}</current_datetime>\n\n", input.now);
        if index == 0 && !input.tools_gone.is_empty() {
            text.push_str(&prompt::tools_gone_notice(&input.tools_gone));
            text.push_str("\n\n");
        }
        if let Some(skill) = skills::of_message(&input, index, message).await? {
            text.push_str(&skill_text(&skill));
            text.push_str("\n\n");
            loaded.push(skill);
        }
        let limits = input.route.known_model(&model).map(|known| known.images);
        let fitted =
            picture::fit_attachments(&message.attachments, limits.unwrap_or_default()).await;
        let rendered = attachments::render(&message.prompt, &message.attachments).await;
        text.push_str(&rendered.text);
        missing.extend(rendered.notices);
        if let Some((_, notes)) = &fitted {
            text.push_str(&attachments::changed(notes));
        }
        if let Some(hooks) = hooks.as_ref().filter(|hooks| hooks.is_for_prompts()) {
            let end = hooks.context.prompt_transformed(&message.prompt, &text);
            let end = end.await;
            text = end.changed.unwrap_or(text);
            said.ended.extend(end.ended);
        }
        messages.push(PreparedMessage {
            id: message.id.clone(),
            text,
            attachments: fitted.map(|(attachments, _)| attachments),
        });
    }
    let agent = selected_agent(&input).await;
    let own = skills::of_agent(&input, agent.as_ref()).await;
    let mut notices = PrepareNotices {
        skills: own.problems,
        instructions: Vec::new(),
        attachments: missing,
    };
    let system = match input.system.clone() {
        Some(system) => system,
        None => system_message(&input, &model, agent.as_ref(), &own.loaded, &mut notices).await,
    };
    said.context
        .extend(attached_instructions(&input, &mut notices).await);
    let prepared = Prepared {
        messages,
        blocked,
        model,
        reasoning_effort: input
            .reasoning_effort
            .or_else(|| input.options.reasoning_effort.clone()),
        system,
        context: said.context,
        ended: said.ended,
        skills: loaded,
        preloaded: own.loaded,
    };
    Ok((prepared, notices))
}

/// Returns the instructions for the files that are attached, as far as the conversation does not have
/// them.
async fn attached_instructions(
    input: &PrepareInput,
    notices: &mut PrepareNotices,
) -> Option<String> {
    let attachments = input
        .messages
        .iter()
        .flat_map(|message| &message.attachments);
    let used = attachments.filter_map(|attachment| attachment.path());
    let used: Vec<PathBuf> = used.map(|path| Path::new(&input.cwd).join(path)).collect();
    if !input.instructions.may_be_near(&used) {
        return None;
    }
    let lookup = input.instructions.clone();
    let reading = tokio::task::spawn_blocking(move || lookup.near(&used)).await;
    let (mut files, warnings) = reading
        .inspect_err(|error| tracing::error!(%error, "the instructions could not be looked for"))
        .ok()?;
    notices.instructions.extend(warnings);
    files.retain(|file| !input.given_instructions.contains(&file.path));
    (!files.is_empty()).then(|| texts::instructions::following(&files))
}

impl PromptHooks {
    /// Whether prompts are those of people. The prompts of a sub-agent are its parent's.
    fn is_for_prompts(&self) -> bool {
        self.context.agent.is_none()
    }
}

/// Tells the hooks that the session begins, and lets them change or block prompts. Takes the blocked ones
/// out and returns them, unless nothing is left that the loop could go on with.
async fn hooked_prompts(
    hooks: &PromptHooks,
    messages: &mut Vec<PendingMessage>,
    said: &mut PromptEnd,
) -> Result<Vec<BlockedMessage>, ModelFailure> {
    let context = &hooks.context;
    if let Some(source) = hooks.begins {
        let first = messages.first().map(|message| message.prompt.as_str());
        let end = context.session_starts(source, first.unwrap_or_default());
        let end = end.await;
        if let Some(why) = &end.blocked {
            let kind = match context.agent {
                Some(_) => HookKind::SubagentStart,
                None => HookKind::SessionStart,
            };
            return Err(blocked(kind, why));
        }
        hooks.let_begin.store(true, Ordering::Relaxed);
        said.add(end);
    }
    if !hooks.is_for_prompts() {
        return Ok(Vec::new());
    }
    let mut kept_back = Vec::new();
    let joins = messages
        .iter()
        .all(|message| message.delivery == Delivered::Steering);
    let mut passed = Vec::with_capacity(messages.len());
    for mut message in std::mem::take(messages) {
        let end = context.prompt_submitted(&message.prompt).await;
        if let Some(why) = &end.blocked {
            let failure = blocked(HookKind::UserPromptSubmitted, why);
            let id = message.id;
            kept_back.push(BlockedMessage { id, failure });
            continue;
        }
        if let Some(changed) = &end.changed {
            message.prompt.clone_from(changed);
        }
        said.add(end);
        passed.push(message);
    }
    *messages = passed;
    match kept_back.pop() {
        // Nothing runs that could go on without them.
        Some(last) if messages.is_empty() && !joins => Err(last.failure),
        last => {
            kept_back.extend(last);
            Ok(kept_back)
        }
    }
}

fn blocked(kind: HookKind, why: &str) -> ModelFailure {
    let why = if why.trim().is_empty() {
        "it gave no reason"
    } else {
        why.trim()
    };
    ModelFailure {
        kind: PROMPT_BLOCKED.to_owned(),
        code: None,
        message: format!("A {kind} hook does not let this prompt through: {why}"),
        status: None,
        provider_call_id: None,
        model: None,
        retry_after_seconds: None,
    }
}

async fn system_message(
    input: &PrepareInput,
    model: &str,
    agent: Option<&SelectedAgent>,
    skills: &[SkillInvoked],
    notices: &mut PrepareNotices,
) -> String {
    if let Some(config) = &input.options.system_message
        && config.mode.as_deref() == Some("replace")
    {
        return config.content.clone().unwrap_or_default();
    }
    let own_prompt = prompt_with_memory(input).await.unwrap_or_default();
    let instructions = input.instructions.clone().section().await;
    notices.instructions.extend(instructions.warnings);
    let mut notes = instructions.text;
    if let Some(board) = board_notes(input, notices).await {
        if !notes.is_empty() {
            notes.push_str("\n\n");
        }
        notes.push_str(&board);
    }
    let skills: Vec<String> = skills.iter().map(skill_text).collect();
    let sections = prompt::sections(&PromptInput {
        cwd: &input.cwd,
        model,
        tool_names: &input.tool_names,
        mode: input.mode,
        planning: input.planning,
        agent_prompt: match &input.profile {
            Some(_) if !own_prompt.is_empty() => Some(own_prompt.as_str()),
            Some(profile) => Some(profile.prompt.as_str()),
            None => agent.map(|agent| agent.prompt.as_str()),
        },
        skills: &skills.join("\n\n"),
        works_for_another: input.profile.is_some(),
        instructions: notes,
    });
    let Some(config) = &input.options.system_message else {
        return sections.text();
    };
    let content = config.content.as_deref().unwrap_or_default();
    match config.mode.as_deref().unwrap_or("append") {
        "customize" => {
            let mut sections = sections;
            let mut wanted = BTreeMap::new();
            for (name, section) in config.sections.iter().flatten() {
                if section.action == SectionAction::Transform {
                    wanted.insert(name.clone(), sections.get(name));
                } else {
                    sections.change(name, section);
                }
            }
            transform(input, &mut sections, wanted).await;
            prompt::with_appended(sections.text(), content)
        }
        _ => prompt::with_appended(sections.text(), content),
    }
}

/// The definition of the agent that answers in a session at the top.
pub(super) struct SelectedAgent {
    pub(super) prompt: String,
    /// The skills that its system message has.
    pub(super) skills: Vec<String>,
}

/// Returns the selected agent; `None` if there is none, or its definition is gone.
///
/// The file is read again for every message, so that an edit takes effect at once.
async fn selected_agent(input: &PrepareInput) -> Option<SelectedAgent> {
    let name = input.agent.as_ref()?;
    let mut agents = input.options.custom_agents.iter().flatten();
    if let Some(agent) = agents.find(|agent| agent.name == *name) {
        return Some(SelectedAgent {
            prompt: agent.prompt.clone(),
            skills: agent.skills.clone().unwrap_or_default(),
        });
    }
    let launch = input.route.launch.as_ref();
    let host = Host {
        copilot: None,
        home: input.route.services.home.clone(),
        user: launch
            .and_then(|launch| launch.variable("HOME"))
            .map(PathBuf::from),
    };
    // Trust decides what may run and which permissions are granted; a prompt does neither.
    let agents = RosterInput::of_session(
        &input.options,
        Path::new(&input.cwd),
        host,
        ProjectTrust::None,
    );
    let name = name.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let roster = definitions::load(&agents);
        roster.get(&name).map(|agent| SelectedAgent {
            prompt: agent.prompt.clone(),
            skills: agent.skills.clone().unwrap_or_default(),
        })
    });
    reading.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the agents could not be looked for");
        None
    })
}

/// Returns the prompt of a sub-agent that has a memory, with what it is told about that.
async fn prompt_with_memory(input: &PrepareInput) -> Option<String> {
    let profile = input.profile.as_ref()?;
    let folder = PathBuf::from(profile.memory.as_ref()?);
    let reading = tokio::task::spawn_blocking(move || memory::prompt(&folder)).await;
    let memory = reading
        .inspect_err(|error| tracing::error!(%error, "the memory of an agent could not be read"))
        .ok()?;
    Some(format!("{}\n\n{memory}", profile.prompt))
}

/// Returns the notes of the context board that the session is shown. An app that does not want what the
/// user has on disk is not given them, and a sub-agent has what it was told.
async fn board_notes(input: &PrepareInput, notices: &mut PrepareNotices) -> Option<String> {
    let discovers = input.options.enable_config_discovery == Some(true);
    if !discovers || !input.options.shares_notes() || input.profile.is_some() {
        return None;
    }
    let board = input.route.services.board(Path::new(&input.cwd));
    let reading = tokio::task::spawn_blocking(move || board.shown()).await;
    match reading {
        Ok(Ok(shown)) => shown,
        Ok(Err(error)) => {
            notices.instructions.push(error.to_string());
            None
        }
        Err(error) => {
            tracing::error!(%error, "the context board could not be read");
            None
        }
    }
}

/// Returns the text of a skill as models read it.
fn skill_text(skill: &SkillInvoked) -> String {
    texts::skill::context(&skill.name, &skill.path, &skill.content)
}

/// Lets a client rewrite the sections that ask for it; without an answer they stay unchanged.
async fn transform(
    input: &PrepareInput,
    sections: &mut Sections,
    wanted: BTreeMap<String, String>,
) {
    if wanted.is_empty() {
        return;
    }
    for client in &input.transformers {
        let asked = client.ask_sections(&input.session, &wanted);
        match tokio::time::timeout(TRANSFORM_WAIT, asked).await {
            Ok(Ok(rewritten)) => {
                for (name, content) in rewritten {
                    sections.set(&name, content);
                }
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %input.session, %error, "a client did not rewrite the system message");
            }
            Err(_) => {
                tracing::warn!(session = %input.session, "a client took too long to rewrite the system message");
            }
        }
    }
}
