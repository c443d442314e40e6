//! Messages about the model. The daemon chooses the model; this module only describes it.

use loopd_sdk::Choice;

/// The model that is built into the daemon. It only carries out commands.
pub(crate) const OFFLINE: &str = "offline";

/// Returns a hint if the built-in model is used only because no model is configured.
pub(crate) fn hint(chosen: &Choice, named: Option<&str>) -> Option<&'static str> {
    let unchosen = chosen.provider == OFFLINE && named.is_none() && chosen.model == OFFLINE;
    unchosen.then_some(
        "no model is configured, so the built-in `offline` answers; for a real one set OPENAI_API_KEY, \
         ANTHROPIC_API_KEY or OPENAI_BASE_URL (any compatible server), or write config.toml in the home",
    )
}

/// Describes the provider and the model.
pub(crate) fn describe(chosen: &Choice) -> String {
    let Choice {
        provider,
        model,
        base_url,
        has_key,
    } = chosen;
    match base_url {
        None => format!("the built-in model `{model}`"),
        Some(url) => {
            let key = if *has_key {
                "with a key"
            } else {
                "without a key"
            };
            format!("{model} of {provider} at {url}, {key}")
        }
    }
}
