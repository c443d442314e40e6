//! Lists and reads the resources of a server.

use serde_json::{Value, json};

use super::lists::Pages;
use super::{Call, CallError, Connection, Order, request_of};
use crate::result::CallResult;
use crate::tools::ToolKind;

/// The most templates of one server.
const MOST_TEMPLATES: usize = 1_000;

impl Connection {
    /// Lists the resources of the server and their templates, or reads one.
    pub(crate) async fn use_resources(
        &self,
        kind: ToolKind,
        call: &Call,
    ) -> Result<CallResult, CallError> {
        let argument = |name: &str| call.arguments.get(name).cloned();
        match kind {
            ToolKind::ReadResource => {
                let params = json!({"uri": argument("uri")});
                let read = self.ask_for(call, "resources/read", params).await?;
                Ok(CallResult::read_resource(&read))
            }
            ToolKind::Call | ToolKind::ListResources => {
                let cursor = argument("cursor").filter(|it| !it.is_null());
                let params = match &cursor {
                    Some(cursor) => json!({"cursor": cursor}),
                    None => json!({}),
                };
                let mut listed = self.ask_for(call, "resources/list", params).await?;
                // The templates are with the first page. Not every server has some.
                if cursor.is_none()
                    && let Some(listed) = listed.as_object_mut()
                {
                    let templates = tokio::select! {
                        templates = self.templates(call) => templates,
                        () = call.cancel.cancelled() => return Err(CallError::Cancelled),
                    };
                    if !templates.is_empty() {
                        listed.insert("resourceTemplates".to_owned(), templates.into());
                    }
                }
                Ok(CallResult::of_text(listed.to_string()))
            }
        }
    }

    async fn templates(&self, call: &Call) -> Vec<Value> {
        let mut templates = Vec::new();
        let mut pages = Pages::new("resources/templates/list", call.timeout);
        while let Ok(Some(mut page)) = pages.next(self).await {
            if let Some(Value::Array(listed)) = page.get_mut("resourceTemplates") {
                templates.append(listed);
            }
            if templates.len() >= MOST_TEMPLATES {
                templates.truncate(MOST_TEMPLATES);
                break;
            }
        }
        templates
    }

    /// Sends a request in the place of a call.
    async fn ask_for(
        &self,
        call: &Call,
        method: &'static str,
        params: Value,
    ) -> Result<Value, CallError> {
        let mut guard = self.calls.begin(call.label.clone());
        let order = Order {
            timeout: call.timeout,
            meta: call.meta.clone(),
            progress: call.progress.as_ref(),
            cancel: &call.cancel,
        };
        let asked = request_of(method, params);
        self.exchange(asked, &mut guard, &order).await
    }
}
