//! `loopd.config`: the file of settings.

use loopd_proto::params::config::{ConfigSetting, ConfigShown, SetValue};
use loopd_proto::params::server::NoParams;
use loopd_proto::provider::without_address_secrets;
use serde_json::Value;

use super::discover::{look, shown};
use crate::config::reference::{Setting, settings};
use crate::config::{FILE, text_of};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

pub(super) async fn show(context: Context, _: NoParams) -> Result<ConfigShown, RpcError> {
    let services = context.app.services.clone();
    look(move || {
        let path = services.home.join(FILE);
        let known = settings();
        let text = text_of(&services.home);
        ConfigShown {
            path: shown(&path),
            exists: path.exists(),
            problem: services.config.problem_now(&services.home),
            set: text.map_or_else(Vec::new, |text| set(&text, &known)),
            settings: known.into_iter().map(describe).collect(),
        }
    })
    .await
}

fn describe(setting: Setting) -> ConfigSetting {
    ConfigSetting {
        key: setting.path(),
        kind: setting.kind,
        default: setting.default,
        help: setting.help,
    }
}

/// Returns what a file sets, as far as the settings are known. What is not known may be a key that does not
/// belong there.
fn set(text: &str, known: &[Setting]) -> Vec<SetValue> {
    let mut set = Vec::new();
    if let Ok(value) = toml::from_str::<Value>(text) {
        flatten(String::new(), value, &mut set);
    }
    let paths: Vec<String> = known.iter().map(Setting::path).collect();
    set.retain(|it| paths.iter().any(|path| is_setting(path, &it.key)));
    set
}

fn flatten(key: String, value: Value, set: &mut Vec<SetValue>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let below = if key.is_empty() {
                    name
                } else {
                    format!("{key}.{name}")
                };
                flatten(below, value, set);
            }
        }
        Value::String(text) if text.contains("://") => {
            let value = Value::String(without_address_secrets(&text));
            set.push(SetValue { key, value });
        }
        value => set.push(SetValue { key, value }),
    }
}

/// Returns whether a key is that of a setting, where `NAME` stands for any name, also one with dots.
fn is_setting(path: &str, key: &str) -> bool {
    match path.split_once("NAME") {
        None => path == key,
        Some((before, after)) => {
            let name = key.strip_prefix(before);
            let name = name.and_then(|rest| rest.strip_suffix(after));
            name.is_some_and(|name| !name.is_empty())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_set_is_shown_without_what_might_be_a_key() {
        let text = "model = \"work/x\"\napi_key = \"sk-1\"\n[provider.work]\nbase_url = \"https://me:pw@host/v1\"\n\
                    token = \"t\"\n[prices.\"gpt-4.1\"]\ninput = 2.0\noutput = 8\n[agents]\nmax_depth = 3\n";
        let set = set(text, &settings());
        let set: Vec<(&str, Value)> = set
            .iter()
            .map(|it| (it.key.as_str(), it.value.clone()))
            .collect();
        assert_eq!(
            set,
            [
                ("model", json!("work/x")),
                ("provider.work.base_url", json!("https://host/v1")),
                ("prices.gpt-4.1.input", json!(2.0)),
                ("prices.gpt-4.1.output", json!(8)),
                ("agents.max_depth", json!(3)),
            ]
        );
    }
}
