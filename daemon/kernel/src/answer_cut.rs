//! An answer that the model did not finish: who learns of it, and in which words.
//!
//! The log says it with a `session.warning` after the message, because the public schema of the
//! message has no member for it.

use crate::model::Finish;

/// Why the message of a model is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerCut {
    /// It reached the limit of output tokens.
    Length,
    /// The provider withheld it, or the rest of it.
    ContentFilter,
    /// It ended for a reason that is not known, so that it may not be complete.
    Unknown,
}

const LENGTH: &str = "answer_cut";
const CONTENT_FILTER: &str = "answer_filtered";
const UNKNOWN: &str = "answer_end_unknown";

/// The type of the warning that a model has answered nothing: neither a text nor a call. It is told by a
/// type of its own, because nothing is missing from such an answer.
pub(crate) const EMPTY: &str = "answer_empty";

/// What people are told of an answer that is empty.
pub(crate) const TOLD_OF_EMPTY: &str = "The agent ended without an answer: its model sent neither text nor a call. Ask again, or in other words.";

impl AnswerCut {
    /// Returns why a message with this finish is not complete; `None` if it is.
    pub(crate) fn of(finish: Finish) -> Option<Self> {
        match finish {
            Finish::Length => Some(Self::Length),
            Finish::ContentFilter => Some(Self::ContentFilter),
            Finish::Unknown => Some(Self::Unknown),
            Finish::Stop | Finish::ToolCalls => None,
        }
    }

    /// Returns what a stored warning of this type says about the message before it.
    pub(crate) fn of_warning(warning_type: &str) -> Option<Self> {
        match warning_type {
            LENGTH => Some(Self::Length),
            CONTENT_FILTER => Some(Self::ContentFilter),
            UNKNOWN => Some(Self::Unknown),
            _ => None,
        }
    }

    /// Returns the type of the warning that tells it.
    pub(crate) fn warning_type(self) -> &'static str {
        match self {
            Self::Length => LENGTH,
            Self::ContentFilter => CONTENT_FILTER,
            Self::Unknown => UNKNOWN,
        }
    }

    pub(crate) fn told_to_people(self) -> &'static str {
        match self {
            Self::Length => {
                "The answer is not complete: the model reached its limit of output tokens. Ask it to \
                 continue, or raise the limit (max_output_tokens)."
            }
            Self::ContentFilter => {
                "The answer is not complete: the provider's content filter withheld it or the rest of \
                 it. Put the request in other words."
            }
            Self::Unknown => {
                "The answer may not be complete: the provider gives a reason for its end that loopd does not \
                 know. Look at its end, or ask for it again."
            }
        }
    }

    /// Returns the result of a call whose arguments are not whole: the model has to make it again.
    pub fn told_of_cut_call(self) -> String {
        format!(
            "The call was not run: {}, so its arguments are not complete. Make it again; write large files \
             in several smaller calls.",
            self.happened()
        )
    }

    /// Returns the note after the result of the last call of an answer that was cut.
    pub(crate) fn told_after_calls(self) -> String {
        format!(
            "[{}, so what you meant to say or call after this call is missing.]",
            self.happened()
        )
    }

    fn happened(self) -> &'static str {
        match self {
            Self::Length => "Your answer was cut off at the limit of output tokens",
            Self::ContentFilter => "The content filter of the provider cut your answer off",
            Self::Unknown => "The provider ended your answer for a reason that is not known",
        }
    }

    /// Returns the note for the agent that started the one whose answer was cut.
    pub fn told_to_parent(self) -> &'static str {
        match self {
            Self::Length => {
                "[This answer is not complete: the agent reached the limit of output tokens of its model.]"
            }
            Self::ContentFilter => {
                "[This answer is not complete: the content filter of the agent's provider withheld it or the rest of it.]"
            }
            Self::Unknown => {
                "[This answer may not be complete: the agent's provider ended it for a reason that is not known.]"
            }
        }
    }
}
