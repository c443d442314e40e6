//! `loopd.modelSources`: the providers that could be used.

use loopd_proto::params::model::{ModelSource, ModelSources, SourcesParams};

use super::model::route_of_launch;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::turn::route::sources::Source;

pub(super) async fn list(
    context: Context,
    params: SourcesParams,
) -> Result<ModelSources, RpcError> {
    let route = route_of_launch(&context);
    let mut sources = route.sources().await;
    if let Some(name) = params.models_of {
        let source = sources.iter_mut().find(|source| source.name == name);
        let source = source.ok_or_else(|| {
            RpcError::InvalidParams(format!("modelsOf: `{name}` is none of the sources"))
        })?;
        source.models = route.models_of(source).await?;
    }
    Ok(ModelSources {
        sources: sources.into_iter().map(describe).collect(),
    })
}

fn describe(source: Source) -> ModelSource {
    ModelSource {
        config: source.config(),
        found: source.found(),
        name: source.name,
        variable: source.variable.map(str::to_owned),
        base_url: source.base_url,
        models: source.models,
    }
}
