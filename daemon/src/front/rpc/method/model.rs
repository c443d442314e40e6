//! Models: lists them, and switches the model of a session.

use loopd_proto::params::model::{
    Capabilities, Choice, ChoiceParams, Current, Effort, EffortParams, Limits, Model, Models,
    SessionModels, Supports, SwitchParams, Switched,
};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::session::Of;
use loopd_proto::provider::without_address_secrets;
use loopd_proto::session::SessionOptions;

use super::session_options;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::turn::route::target::Key;
use crate::turn::route::{Route, TokenClients};
use loopd_kernel::command::{Command, ModelChoice};
use loopd_kernel::model::ModelInfo;

/// The context size reported for a model whose provider does not name one.
const DEFAULT_CONTEXT: u64 = 128_000;

/// Returns the route to models for a session without a provider of its own.
pub(super) fn route_of_launch(context: &Context) -> Route {
    let launch = context.connection.launch();
    Route {
        agent: None,
        session: None,
        options: SessionOptions::default(),
        cwd: launch.cwd.to_string_lossy().into_owned(),
        launch: Some(launch),
        api_token: None,
        token_clients: TokenClients::new(),
        services: context.app.services.clone(),
    }
}

pub(super) async fn list_all(context: Context, _: NoParams) -> Result<Models, RpcError> {
    let models = route_of_launch(&context).models().await?;
    Ok(Models {
        models: models.iter().map(describe).collect(),
    })
}

pub(super) async fn choice(context: Context, params: ChoiceParams) -> Result<Choice, RpcError> {
    let route = route_of_launch(&context);
    let model = match params.model {
        Some(model) => model,
        None => route.default_model().await?,
    };
    let target = route.find_target(&model).await?;
    Ok(Choice {
        provider: target.name,
        model,
        base_url: Some(without_address_secrets(&target.base_url)).filter(|url| !url.is_empty()),
        has_key: !matches!(target.key, Key::None),
    })
}

pub(super) async fn list_of_session(
    context: Context,
    params: Of,
) -> Result<SessionModels, RpcError> {
    let session = context.session(&params.session_id)?;
    let route = session.view(|view| (view.route)()).await?;
    let models = route.models().await?;
    Ok(SessionModels {
        list: models.iter().map(describe).collect(),
    })
}

pub(super) fn describe(model: &ModelInfo) -> Model {
    Model {
        id: model.id.clone(),
        name: model.name.clone(),
        capabilities: Capabilities {
            supports: Supports {
                vision: model.vision,
                reasoning_effort: !model.reasoning_efforts.is_empty(),
            },
            limits: Limits {
                max_context_window_tokens: model.max_context_tokens.unwrap_or(DEFAULT_CONTEXT),
                max_prompt_tokens: None,
                max_output_tokens: model.max_output_tokens,
            },
        },
    }
}

pub(super) async fn current(context: Context, params: Of) -> Result<Current, RpcError> {
    let session = context.session(&params.session_id)?;
    let current = session.state(|state| Current {
        model_id: state.model.clone().or_else(|| state.options.model.clone()),
        reasoning_effort: state.reasoning_effort.clone(),
    });
    Ok(current.await?)
}

pub(super) async fn switch(context: Context, params: SwitchParams) -> Result<Switched, RpcError> {
    let session = context.session(&params.session_id)?;
    if let Some(effort) = &params.reasoning_effort {
        session_options::check_effort(effort)?;
    }
    session_options::check_summary(params.reasoning_summary.as_deref())?;
    session_options::check_context_tier("contextTier", params.context_tier.as_deref())?;
    // A session that no launch has opened yet learns its providers later.
    let (route, is_launched) = session
        .view(|view| ((view.route)(), view.launch.is_some()))
        .await?;
    if is_launched {
        // Refused here, and not by the next call: nothing can serve the model.
        route.find_target(&params.model_id).await?;
    }
    let choice = ModelChoice {
        model: params.model_id.clone(),
        reasoning_effort: params.reasoning_effort,
        capabilities: params.model_capabilities,
    };
    if params.reasoning_summary.is_some() {
        let mut patch = OptionsPatch::default();
        patch.options.reasoning_summary = params.reasoning_summary;
        let change = Command::UpdateOptions(Box::new(patch));
        session.command(change).await?;
    }
    let change = Command::SetModel(Box::new(choice));
    session.command(change).await?;
    if params.context_tier.as_deref() == Some(session_options::LONG_CONTEXT) {
        session_options::warn_of_long_context(&session, "contextTier").await;
    }
    Ok(Switched {
        model_id: params.model_id,
        deferred: false,
    })
}

/// Sets the reasoning effort. The daemon does not check whether the model supports it; the provider
/// refuses it if not.
pub(super) async fn set_effort(context: Context, params: EffortParams) -> Result<Effort, RpcError> {
    let session = context.session(&params.session_id)?;
    let effort = params.reasoning_effort.trim().to_owned();
    session_options::check_effort(&effort)?;
    let (chosen, route) = session
        .view(|view| {
            let chosen = view.state.model.clone().or(view.options.model.clone());
            (chosen, (view.route)())
        })
        .await?;
    // A session that has a model keeps it; this default is for a session without one.
    let default_model = match chosen {
        Some(model) => model,
        None => route.default_model().await?,
    };
    let change = Command::SetReasoningEffort {
        effort: effort.clone(),
        default_model,
    };
    session.command(change).await?;
    Ok(Effort {
        reasoning_effort: effort,
    })
}
