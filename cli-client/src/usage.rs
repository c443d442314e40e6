//! Sums up the tokens and the time of a turn's model calls.

use loopd_sdk::proto::event::turn::Usage;

use crate::model::OFFLINE;

/// The total usage of the model calls since the session was last idle.
#[derive(Debug, Default)]
pub(crate) struct UsageTotal {
    /// The models that answered, in the order of their first call.
    models: Vec<String>,
    calls: u64,
    /// How many of the calls were those of sub-agents.
    agent_calls: u64,
    input: u64,
    cached: u64,
    output: u64,
    milliseconds: u64,
}

impl UsageTotal {
    pub(crate) fn add(&mut self, usage: &Usage) {
        if !self.models.contains(&usage.model) {
            self.models.push(usage.model.clone());
        }
        self.calls += 1;
        self.input += usage.input_tokens;
        self.cached += usage.cache_read_tokens;
        self.output += usage.output_tokens;
        self.milliseconds += usage.duration;
    }

    /// Adds a call of a sub-agent.
    pub(crate) fn add_of_agent(&mut self, usage: &Usage) {
        self.add(usage);
        self.agent_calls += 1;
    }

    /// Returns the line to show; `None` if no tokens were used, or the model is the built-in one.
    pub(crate) fn line(&self) -> Option<String> {
        let is_built_in = self.models.iter().all(|model| model == OFFLINE);
        if is_built_in || self.input + self.output == 0 {
            return None;
        }
        let calls = match (self.calls, self.agent_calls) {
            (1, _) => String::new(),
            (calls, 0) => format!("{calls} model calls, "),
            (calls, agents) => format!("{calls} model calls ({agents} of sub-agents), "),
        };
        let models: Vec<&str> = self.models.iter().map(|model| short(model)).collect();
        let cached = match self.cached {
            0 => String::new(),
            cached => format!(" ({cached} cached)"),
        };
        let tenths = self.milliseconds / 100;
        Some(format!(
            "{}: {calls}{} tokens in{cached}, {} out, {}.{} s",
            models.join(", "),
            self.input,
            self.output,
            tenths / 10,
            tenths % 10
        ))
    }
}

/// Shortens a model name that is the path of a file, as some servers have it, to the file's name.
fn short(model: &str) -> &str {
    if model.starts_with('/') {
        model.rsplit('/').next().unwrap_or(model)
    } else {
        model
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn calls_add_up_to_one_line() {
        let mut total = UsageTotal::default();
        assert_eq!(total.line(), None);
        let call = r#"{"model":"m","inputTokens":100,"outputTokens":7,"cacheReadTokens":0,
            "cacheWriteTokens":0,"reasoningTokens":0,"duration":1230}"#;
        total.add(&usage(call));
        assert_eq!(total.line().unwrap(), "m: 100 tokens in, 7 out, 1.2 s");
        total.add(&usage(
            &call.replace("\"cacheReadTokens\":0", "\"cacheReadTokens\":50"),
        ));
        assert_eq!(
            total.line().unwrap(),
            "m: 2 model calls, 200 tokens in (50 cached), 14 out, 2.4 s"
        );
        total.add_of_agent(&usage(&call.replace("\"m\"", "\"small\"")));
        assert_eq!(
            total.line().unwrap(),
            "m, small: 3 model calls (1 of sub-agents), 300 tokens in (50 cached), 21 out, 3.6 s"
        );
    }

    #[test]
    fn a_path_is_shortened_and_an_organisation_is_kept() {
        assert_eq!(short("/models/small.gguf"), "small.gguf");
        assert_eq!(short("org/model"), "org/model");
    }
}
