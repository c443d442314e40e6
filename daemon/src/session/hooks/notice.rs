//! Which committed events people are notified of, for notification hooks.

use serde::Deserialize;
use serde_json::Value;

use crate::session::journal::Outgoing;

/// What people are notified of.
pub(super) struct Notice {
    pub(super) kind: String,
    pub(super) title: &'static str,
    pub(super) message: String,
}

impl Notice {
    /// Returns what an event notifies people of, if it does.
    pub(super) fn of(event: &Outgoing) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line {
            data: Value,
        }
        let title = match event.kind {
            "permission.requested" => "Permission needed",
            "user_input.requested" | "elicitation.requested" => "Answer needed",
            "system.notification" => "Background work",
            _ => return None,
        };
        let data = serde_json::from_str::<Line>(&event.line).ok()?.data;
        let text = |path: &str| {
            data.pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let (kind, message) = match event.kind {
            "permission.requested" if data.get("resolvedByHook").is_some() => return None,
            "permission.requested" => {
                let asked = text("/permissionRequest/fullCommandText")
                    .or_else(|| text("/permissionRequest/fileName"))
                    .or_else(|| text("/permissionRequest/path"))
                    .or_else(|| text("/permissionRequest/url"))
                    .or_else(|| text("/permissionRequest/toolName"));
                ("permission_prompt".to_owned(), asked)
            }
            "system.notification" => (text("/kind/type")?, text("/content")),
            _ => (
                "elicitation_dialog".to_owned(),
                text("/question").or_else(|| text("/message")),
            ),
        };
        Some(Self {
            kind,
            title,
            message: message.unwrap_or_default(),
        })
    }
}
