//! The providers of a session: adds some, and tells which endpoint its model requests use.

use std::collections::BTreeMap;

use loopd_proto::params::model::Models;
use loopd_proto::params::provider::{AddParams, Endpoint, EndpointParams};

use super::model::describe;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::provide::ProviderChange;
use crate::turn::route::registry;
use crate::turn::route::target::{Format, Key};

/// The environment variable by which a launch lets its clients see keys.
const ALLOWED: &str = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT";

pub(super) async fn add(context: Context, params: AddParams) -> Result<Models, RpcError> {
    let session = context.session(&params.session_id)?;
    let models = params.models.iter().map(registry::info).collect::<Vec<_>>();
    session
        .provide(ProviderChange::Add {
            providers: params.providers,
            models: params.models,
            client: context.connection.client.clone(),
        })
        .await?;
    Ok(Models {
        models: models.iter().map(describe).collect(),
    })
}

pub(super) async fn endpoint(
    context: Context,
    params: EndpointParams,
) -> Result<Endpoint, RpcError> {
    let session = context.session(&params.session_id)?;
    let allowed = context
        .connection
        .launch()
        .variable(ALLOWED)
        .is_some_and(|value| matches!(value, "true" | "1"));
    if !allowed {
        return Err(RpcError::Failed(format!(
            "keys are not given away; start the runtime with {ALLOWED}=true to allow it"
        )));
    }
    let (route, current) = session
        .view(|view| {
            let model = view.state.model.clone().or(view.options.model.clone());
            ((view.route)(), model)
        })
        .await?;
    let model = params.model_id.or(current).unwrap_or_default();
    let target = route.target(&model)?;
    let (kind, wire_api) = match target.format {
        Format::Copilot | Format::Completions => ("openai", Some("completions")),
        Format::Responses => ("openai", Some("responses")),
        Format::AzureCompletions => ("azure", Some("completions")),
        Format::AzureResponses => ("azure", Some("responses")),
        Format::Anthropic => ("anthropic", None),
        Format::Offline | Format::Replay => {
            return Err(RpcError::Failed(
                "a built-in model answers this session; it has no endpoint".to_owned(),
            ));
        }
    };
    let key = match &target.key {
        Key::ApiKey(secret) | Key::Bearer(secret) => Some(secret.expose().to_owned()),
        Key::None | Key::Asked => None,
    };
    let mut headers: BTreeMap<String, String> = target.headers;
    if let (Key::Bearer(secret), Format::Copilot) = (&target.key, target.format) {
        let value = format!("Bearer {}", secret.expose());
        headers.insert("Authorization".to_owned(), value);
    }
    Ok(Endpoint {
        kind: kind.to_owned(),
        wire_api: wire_api.map(str::to_owned),
        base_url: target.base_url,
        api_key: key,
        headers,
        transport: Some("http".to_owned()),
    })
}
