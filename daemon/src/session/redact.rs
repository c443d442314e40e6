//! Removes the session's secrets from the output of tools, and from what is stored of their calls.
//!
//! Every tool outcome, from a built-in tool or a client's, passes through here before it reaches
//! the state, the log and the model's context. So do the arguments of calls, permission requests and
//! what is said of tasks. A call in the daemon still runs with the arguments that the model wrote; a
//! client's tool gets them masked, because it gets what the log has.

use std::borrow::Cow;
use std::sync::Arc;

use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::ToolCallId;
use loopd_proto::permission::{PermissionPrompt, PermissionRequest};
use loopd_proto::session::ProviderConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::actor::Actor;
use crate::launch::Launch;
use crate::redaction::Redaction;
use loopd_kernel::command::{CallNeed, CallOutcome, Command};
use loopd_model::secret::Secret;

impl Actor {
    /// Returns a search for all secrets that this session and its launches hold now.
    pub(super) fn redaction(&self) -> Redaction {
        let mut values: Vec<String> = Vec::new();
        let of_launch = |launch: &Launch| {
            // The keys that the configuration file names may have any names.
            let variables = self.services.config.key_variables();
            let keys = variables.filter_map(|name| launch.variable(name).map(str::to_owned));
            let keys: Vec<String> = keys.collect();
            launch.secret_values().into_iter().chain(keys)
        };
        values.extend(
            self.clients
                .launch()
                .into_iter()
                .flat_map(|it| of_launch(it)),
        );
        let mut launch = self.clients.launch();
        for attachment in self.clients.attachments() {
            // Most clients share one launch, whose values are there already.
            if !launch.is_some_and(|known| Arc::ptr_eq(known, &attachment.launch)) {
                values.extend(of_launch(&attachment.launch));
                launch = Some(&attachment.launch);
            }
            let token = attachment.api_token.as_ref().map(Secret::expose);
            values.extend(token.map(str::to_owned));
        }
        let token = self.clients.api_token();
        values.extend(token.map(|token| token.expose().to_owned()));
        let named = self.options.providers.iter().flatten();
        for provider in self.options.provider.iter().chain(named) {
            values.extend(keys(provider));
        }
        values.extend(self.services.logins.secrets());
        values.extend(self.mcp.secrets());
        Redaction::of(values)
    }

    /// Masks every secret in the outcome that a command reports.
    pub(super) fn without_secrets(&self, mut command: Command) -> Command {
        if let Command::TaskEnded { end, .. } = &mut command
            && let Some(result) = &mut end.result
        {
            self.redaction().clean_in_place(result);
            return command;
        }
        if let Command::AnswerExitPlanMode {
            edited: Some(plan), ..
        } = &mut command
        {
            self.redaction().clean_in_place(plan);
            return command;
        }
        if let Command::ExitPlanModeFailed { why, .. } = &mut command {
            self.redaction().clean_in_place(why);
            return command;
        }
        let outcome = match &mut command {
            Command::ToolFinished { outcome, .. }
            | Command::AnswerTool { outcome, .. }
            | Command::UserCommandEnded { outcome, .. } => outcome,
            Command::Assessed(assessed) => match &mut assessed.need {
                CallNeed::Refused(outcome) => outcome,
                CallNeed::Approval(plan) => {
                    let redaction = self.redaction();
                    redaction.clean_in_place(&mut plan.summary);
                    redaction.clean_in_place(&mut plan.content);
                    return command;
                }
                CallNeed::Nothing | CallNeed::Permission(_) | CallNeed::Answer(_) => {
                    return command;
                }
            },
            _ => return command,
        };
        mask(&self.redaction(), outcome);
        command
    }

    /// Returns an event as it is stored, applied and published: without secrets, and with nothing
    /// hidden in what a person is asked. `made` keeps the search for secrets for further events of
    /// the same transaction.
    pub(super) fn presentable(&mut self, event: Durable, made: &mut Option<Redaction>) -> Durable {
        match event {
            Durable::AssistantMessage(mut message) if !message.tool_requests.is_empty() => {
                let redaction = &*made.get_or_insert_with(|| self.redaction());
                for request in &mut message.tool_requests {
                    self.mask_arguments(redaction, &request.tool_call_id, &mut request.arguments);
                }
                Durable::AssistantMessage(message)
            }
            Durable::ToolStart(mut start) => {
                if let Some(arguments) = &mut start.arguments {
                    let redaction = &*made.get_or_insert_with(|| self.redaction());
                    self.mask_arguments(redaction, &start.tool_call_id, arguments);
                }
                Durable::ToolStart(start)
            }
            Durable::PermissionRequested(mut asked) => {
                let redaction = &*made.get_or_insert_with(|| self.redaction());
                show(redaction, &mut asked.permission_request);
                let prompt = asked.prompt_request.take();
                asked.prompt_request =
                    prompt.map(|_| PermissionPrompt::from(&asked.permission_request));
                Durable::PermissionRequested(asked)
            }
            Durable::ToolComplete(done) => {
                self.running.forget_arguments(&done.tool_call_id);
                Durable::ToolComplete(done)
            }
            Durable::SessionError(it) => Durable::SessionError(self.masked(it, made)),
            Durable::SessionWarning(it) => Durable::SessionWarning(self.masked(it, made)),
            Durable::SystemNotification(it) => Durable::SystemNotification(self.masked(it, made)),
            Durable::SkillInvoked(it) => Durable::SkillInvoked(self.masked(it, made)),
            Durable::TodosUpdated(it) => Durable::TodosUpdated(self.masked(it, made)),
            Durable::FleetSettled(it) => Durable::FleetSettled(self.masked(it, made)),
            Durable::TaskStarted(it) => Durable::TaskStarted(self.masked(it, made)),
            Durable::TaskNoted(it) => Durable::TaskNoted(self.masked(it, made)),
            Durable::TaskAnswered(it) => Durable::TaskAnswered(self.masked(it, made)),
            Durable::TaskEnded(it) => Durable::TaskEnded(self.masked(it, made)),
            Durable::HookEnd(it) => Durable::HookEnd(self.masked(it, made)),
            Durable::ContextAdded(it) => Durable::ContextAdded(self.masked(it, made)),
            Durable::TaskComplete(it) => Durable::TaskComplete(self.masked(it, made)),
            Durable::StopBlocked(it) => Durable::StopBlocked(self.masked(it, made)),
            Durable::Reminded(it) => Durable::Reminded(self.masked(it, made)),
            other => other,
        }
    }

    /// Returns an event that is told and not stored without secrets. Only what others say can have
    /// some: a provider may repeat the address that it was asked at, a server its environment.
    pub(super) fn tellable<'e>(&self, event: &'e Ephemeral) -> Cow<'e, Ephemeral> {
        match event {
            Ephemeral::ModelCallFailure(it) => {
                let masked = self.masked(it.clone(), &mut None);
                Cow::Owned(Ephemeral::ModelCallFailure(masked))
            }
            Ephemeral::SessionError(it) => {
                let masked = self.masked(it.clone(), &mut None);
                Cow::Owned(Ephemeral::SessionError(masked))
            }
            Ephemeral::McpServersLoaded(it) => {
                let masked = self.masked(it.clone(), &mut None);
                Cow::Owned(Ephemeral::McpServersLoaded(masked))
            }
            Ephemeral::McpStatusChanged(it) => {
                let masked = self.masked(it.clone(), &mut None);
                Cow::Owned(Ephemeral::McpStatusChanged(masked))
            }
            other => Cow::Borrowed(other),
        }
    }

    /// Masks the arguments of a call, and keeps what the model wrote for running it.
    fn mask_arguments(&mut self, redaction: &Redaction, call: &ToolCallId, arguments: &mut Value) {
        if redaction.is_empty() {
            return;
        }
        let mut masked = arguments.clone();
        if redaction.clean_value(&mut masked) {
            let written = std::mem::replace(arguments, masked);
            self.running.keep_arguments(call, written);
        }
    }

    /// Masks every text of a value.
    fn masked<T: Serialize + DeserializeOwned>(&self, value: T, made: &mut Option<Redaction>) -> T {
        let redaction = made.get_or_insert_with(|| self.redaction());
        if redaction.is_empty() {
            return value;
        }
        let Ok(mut written) = serde_json::to_value(&value) else {
            return value;
        };
        if !redaction.clean_value(&mut written) {
            return value;
        }
        serde_json::from_value(written).unwrap_or_else(|error| {
            tracing::error!(session = %self.state.id, %error, "a secret could not be masked in an event");
            value
        })
    }
}

/// Shows a permission request without secrets and with nothing hidden. The real names of files stay
/// among their other names, because rules are compared with them.
fn show(redaction: &Redaction, request: &mut PermissionRequest) {
    let shown = |text: &mut String| *text = redaction.shown(text);
    let name = |name: &mut String, also_named: &mut Vec<String>| {
        let plain = redaction.clean(name).into_owned();
        *name = redaction.shown(&plain);
        if *name != plain && !also_named.contains(&plain) {
            also_named.push(plain);
        }
    };
    match request {
        PermissionRequest::Shell {
            full_command_text,
            intention,
            commands,
            possible_paths,
            possible_urls,
            warning,
            ..
        } => {
            shown(full_command_text);
            shown(intention);
            warning.iter_mut().for_each(shown);
            for text in commands
                .iter_mut()
                .map(|command| &mut command.identifier)
                .chain(possible_paths)
                .chain(possible_urls.iter_mut().map(|found| &mut found.url))
            {
                shown(text);
            }
        }
        PermissionRequest::Write {
            intention,
            file_name,
            diff,
            new_file_contents,
            other_files,
            also_named,
            ..
        } => {
            shown(intention);
            shown(diff);
            new_file_contents.iter_mut().for_each(shown);
            for name in also_named.iter_mut() {
                redaction.clean_in_place(name);
            }
            name(file_name, also_named);
            for file in other_files {
                name(file, also_named);
            }
        }
        PermissionRequest::Read {
            intention,
            path,
            also_named,
            ..
        } => {
            shown(intention);
            for name in also_named.iter_mut() {
                redaction.clean_in_place(name);
            }
            name(path, also_named);
        }
        PermissionRequest::Url { intention, url, .. } => {
            shown(intention);
            shown(url);
        }
        PermissionRequest::Mcp { args, .. } => {
            if let Some(args) = args {
                redaction.clean_value(args);
            }
        }
        PermissionRequest::CustomTool {
            args,
            tool_description,
            ..
        } => {
            shown(tool_description);
            if let Some(args) = args {
                redaction.clean_value(args);
            }
        }
        PermissionRequest::Hook {
            tool_args,
            hook_message,
            ..
        } => {
            if let Some(message) = hook_message {
                shown(message);
            }
            if let Some(args) = tool_args {
                redaction.clean_value(args);
            }
        }
    }
}

/// Returns the keys of a provider, and the values of its secret headers.
fn keys(provider: &ProviderConfig) -> impl Iterator<Item = String> {
    let headers = provider.headers.iter().flatten();
    let headers = headers
        .filter(|(name, _)| is_identity(name))
        // The words before the last one name the scheme.
        .filter_map(|(_, value)| value.split_whitespace().next_back());
    let keys = [&provider.api_key, &provider.bearer_token];
    let keys = keys.into_iter().flatten().map(String::as_str);
    let address = provider.base_url.as_deref().unwrap_or_default();
    keys.chain(headers)
        .map(str::to_owned)
        .chain(loopd_proto::provider::address_secrets(address))
}

/// Returns whether a header authenticates; others hold versions and names, which are no secrets.
fn is_identity(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"]
        .iter()
        .any(|word| header.contains(word))
}

fn mask(redaction: &Redaction, outcome: &mut CallOutcome) {
    let result = &mut outcome.result;
    redaction.clean_in_place(&mut result.content);
    if let Some(detail) = &mut result.detailed_content {
        redaction.clean_in_place(detail);
    }
    if let Some(data) = &mut result.structured_content {
        redaction.clean_value(data);
    }
    for binary in result.binary_results_for_llm.iter_mut().flatten() {
        if let Some(description) = &mut binary.description {
            redaction.clean_in_place(description);
        }
    }
}
