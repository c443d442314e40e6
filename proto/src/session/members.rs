//! The members of the requests that open a session, change its options and send messages: what becomes of
//! each of them.
//!
//! The table has every member that the public clients send. One that nothing here could keep is refused by
//! name if it narrows what a session may do or changes who answers; otherwise it is accepted and people are
//! told that it has no effect. A member that is not in the table is refused if it is a mistake for one that is.
//! Otherwise a later client may know it: people are told that it has no effect here. A change of options is
//! refused instead, since it asks for nothing else.

mod nested;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::misspelt::meant;

pub use nested::{NESTED, NestedMembers};
pub use table::TABLE;

/// A request whose members are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Create,
    Resume,
    Send,
    Update,
}

impl Request {
    /// Returns the method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Create => "session.create",
            Self::Resume => "session.resume",
            Self::Send => "session.send",
            Self::Update => "session.options.update",
        }
    }
}

/// What becomes of a member.
#[derive(Debug, Clone, Copy)]
pub enum MemberUse {
    /// It has the effect that it asks for.
    Honoured,
    /// It describes the caller, or asks for what is so anyway: there is nothing to do.
    Nothing,
    /// It is accepted and has no effect, which people are told. With `unless` it asks for nothing.
    WithoutEffect {
        unless: fn(&Value) -> bool,
        why: &'static str,
    },
    /// The request is refused. With `unless` the member asks for nothing.
    Refused {
        unless: fn(&Value) -> bool,
        why: &'static str,
    },
}

/// What becomes of a member in some requests.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub requests: &'static [Request],
    pub becomes: MemberUse,
}

/// A member that was accepted and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutEffect {
    /// Its name, with the place that it has in others.
    pub name: String,
    pub why: &'static str,
}

/// Why a member that is not known has no effect.
const NOT_KNOWN: &str = "it is not known here";

/// The members of an object as they were sent.
type Sent<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Checks the members of a request. Returns those that have no effect; the error names one that cannot be
/// accepted.
pub fn check(request: Request, object: &RawValue) -> Result<Vec<WithoutEffect>, String> {
    let mut without = Vec::new();
    // What is no object is refused by whoever reads the members.
    let Ok(sent) = serde_json::from_str::<Sent<'_>>(object.get()) else {
        return Ok(without);
    };
    for (name, value) in sent {
        let mut rows = TABLE.iter();
        let row = rows.find(|row| row.name == name && row.requests.contains(&request));
        let Some(row) = row else {
            without.extend(unknown(request, &name, value)?);
            continue;
        };
        match row.becomes {
            MemberUse::Honoured => nested::check(row.name, value, &mut without)?,
            MemberUse::Nothing => {}
            MemberUse::WithoutEffect { unless, why } => {
                if !unless(&read(value)) {
                    let name = row.name.to_owned();
                    without.push(WithoutEffect { name, why });
                }
            }
            MemberUse::Refused { unless, why } => {
                if !unless(&read(value)) {
                    return Err(format!("{name}: {why}"));
                }
            }
        }
    }
    Ok(without)
}

fn read(value: &RawValue) -> Value {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// Refuses a member that is a mistake for one that is known, or that should change an option. Another one has
/// no effect.
fn unknown(
    request: Request,
    name: &str,
    value: &RawValue,
) -> Result<Option<WithoutEffect>, String> {
    if asks_for_nothing(name, &read(value)) {
        return Ok(None);
    }
    if let Some(row) = TABLE.iter().find(|row| row.name == name) {
        let methods: Vec<&str> = row.requests.iter().map(|it| it.method()).collect();
        return Err(format!(
            "{name}: it is no member of {}, but of {}",
            request.method(),
            methods.join(" and ")
        ));
    }
    let known = TABLE.iter().filter(|row| row.requests.contains(&request));
    match meant(name, known.map(|row| row.name)) {
        Some(meant) => Err(format!(
            "{name}: there is no such member; did you mean `{meant}`?"
        )),
        // Who changes one thing while a session is live wants that thing.
        None if request == Request::Update => {
            Err(format!("{name}: it is not known here; nothing was changed"))
        }
        None => Ok(Some(WithoutEffect {
            name: name.to_owned(),
            why: NOT_KNOWN,
        })),
    }
}

/// Whether a member that is not known asks for nothing, so that it can be left out: it is empty, or says that
/// the client does not want to be asked something.
fn asks_for_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set && (name.starts_with("request") || name.starts_with("has")),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads the members of a request and keeps what has no effect.
pub(crate) fn checked<E: serde::de::Error>(
    request: Request,
    object: &RawValue,
) -> Result<Vec<WithoutEffect>, E> {
    check(request, object).map_err(E::custom)
}

/// Returns the names of the members that a type is read from.
#[cfg(test)]
pub(crate) fn members_of<'de, T: serde::Deserialize<'de>>() -> &'static [&'static str] {
    names::of::<T>()
}

#[cfg(test)]
mod names;

#[cfg(test)]
mod tests;
