//! What every vendor's answer goes through before its own words are read: lists, whole documents,
//! and errors that came with a good status. Called by the providers over HTTP.

use serde_json::Value;

use super::endpoint::{Answer, Endpoint, Outgoing};
use super::error::ProviderError;
use super::{DeltaSink, NoDeltas, body, error_body};

/// The provider's list of models, unread.
pub(super) async fn listing(
    endpoint: &Endpoint,
    outgoing: Outgoing<'_>,
) -> Result<Vec<u8>, ProviderError> {
    let mut answer = endpoint.get(outgoing).await?;
    body::whole(&mut answer.reply, &mut NoDeltas).await
}

/// An answer that is one document; the error in it, as its vendor marks it, is an error.
pub(super) async fn document(
    mut answer: Answer,
    sink: &mut dyn DeltaSink,
    error_in: fn(&Value) -> Option<&Value>,
) -> Result<Value, ProviderError> {
    let document = body::whole_json(&mut answer.reply, sink).await?;
    match error_in(&document) {
        None => Ok(document),
        Some(error) => Err(error_body::reported(
            error,
            &answer.reply.headers,
            &answer.redactor,
        )),
    }
}

/// The member `error`, where most vendors put what went wrong.
pub(super) fn error_in(document: &Value) -> Option<&Value> {
    document.get("error").filter(|error| !error.is_null())
}
