//! Removes the session's secrets from the output of tools.
//!
//! Every tool outcome, from a built-in tool or a client's, passes through here before it reaches
//! the state, the log and the model's context.

use loopd_proto::session::ProviderConfig;

use super::actor::Actor;
use crate::redaction::Redaction;
use loopd_kernel::command::{CallNeed, CallOutcome, Command};
use loopd_model::secret::Secret;

impl Actor {
    /// Returns a search for all secrets that this session and its launches hold now.
    pub(super) fn redaction(&self) -> Redaction {
        let mut values: Vec<String> = Vec::new();
        if let Some(launch) = self.clients.launch() {
            values.extend(launch.secret_values());
            let variables = self.services.config.key_variables();
            values.extend(variables.filter_map(|name| launch.variable(name).map(str::to_owned)));
        }
        for attachment in self.clients.attachments() {
            values.extend(attachment.launch.secret_values());
            let token = attachment.api_token.as_ref().map(Secret::expose);
            values.extend(token.map(str::to_owned));
        }
        let token = self.clients.api_token();
        values.extend(token.map(|token| token.expose().to_owned()));
        let named = self.options.providers.iter().flatten();
        for provider in self.options.provider.iter().chain(named) {
            values.extend(keys(provider));
        }
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
        let outcome = match &mut command {
            Command::ToolFinished { outcome, .. } | Command::AnswerTool { outcome, .. } => outcome,
            Command::Assessed(assessed) => match &mut assessed.need {
                CallNeed::Refused(outcome) => outcome,
                CallNeed::Nothing | CallNeed::Permission(_) | CallNeed::Answer(_) => {
                    return command;
                }
            },
            _ => return command,
        };
        mask(&self.redaction(), outcome);
        command
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
    keys.chain(headers).map(str::to_owned)
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
    for binary in result.binary_results_for_llm.iter_mut().flatten() {
        if let Some(description) = &mut binary.description {
            redaction.clean_in_place(description);
        }
    }
}
