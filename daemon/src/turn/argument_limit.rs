//! How many bytes of arguments the calls of one answer may have. They are stored, shown to every client
//! and sent back to the model several times. A call over the limit keeps a note in their place, and
//! its result tells the model.

use loopd_kernel::model::ToolCall;
use serde_json::{Value, json};

/// The most bytes of arguments in one answer of a model, as JSON.
const ARGUMENTS: usize = 4 * 1024 * 1024;

/// The member that holds the reason why the arguments were not taken.
const REFUSED: &str = "loopd.refusedArguments";

/// Replaces the arguments of the calls that go over the limit by the reason.
pub(super) fn limit_arguments(calls: &mut [ToolCall]) {
    let mut taken: usize = 0;
    for call in calls {
        let bytes = call.arguments.to_string().len();
        if taken.saturating_add(bytes) <= ARGUMENTS {
            taken += bytes;
            continue;
        }
        let before = match taken {
            0 => String::new(),
            taken => format!(" and the calls before it have {taken} bytes"),
        };
        let reason = format!(
            "The call was not run: its arguments have {bytes} bytes{before}, more than the limit of \
             {ARGUMENTS} bytes for the calls of one answer. Write large files in several smaller calls."
        );
        call.arguments = json!({ REFUSED: reason });
    }
}

/// Returns why the arguments of a call were not taken, if they were not.
pub fn refused_arguments(arguments: &Value) -> Option<&str> {
    arguments.get(REFUSED)?.as_str()
}
