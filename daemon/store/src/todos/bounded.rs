//! Own versions of the functions of SQLite that take as long as the product of the lengths of their arguments.
//!
//! SQLite looks at the time between the steps of a statement, and never inside a function. Each of these
//! takes time in proportion to its arguments, or gives up when the query may not go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error};

use super::pattern::{Pattern, Syntax};

/// The longest pattern of LIKE and GLOB, in bytes.
const LONGEST_PATTERN: usize = 1000;

/// Says whether the query has to stop now.
pub(super) type Over = Arc<dyn Fn() -> bool + Send + Sync>;

/// A function for the values of a call, none of which is NULL.
type Function = fn(&[ValueRef<'_>], &Call<'_>) -> rusqlite::Result<Value>;

/// Gives a connection these functions, which stop when `over` says so.
pub(super) fn register(
    connection: &Connection,
    longest: usize,
    over: &Over,
) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    let functions: [(&str, i32, Function); 9] = [
        ("instr", 2, instr),
        ("replace", 3, replace),
        ("like", 2, like),
        ("like", 3, like),
        ("glob", 2, glob),
        ("trim", 2, |values, _| trim(values, Side::Both)),
        ("ltrim", 2, |values, _| trim(values, Side::Left)),
        ("rtrim", 2, |values, _| trim(values, Side::Right)),
        ("unhex", 2, |_, _| {
            Err(failed("unhex takes one argument here"))
        }),
    ];
    for (name, count, function) in functions {
        let over = over.clone();
        connection.create_scalar_function(name, count, flags, move |context: &Context<'_>| {
            let call = Call {
                over: &*over,
                longest,
            };
            call.check()?;
            let values: Vec<ValueRef<'_>> =
                (0..context.len()).map(|at| context.get_raw(at)).collect();
            if values.contains(&ValueRef::Null) {
                return Ok(Value::Null);
            }
            function(&values, &call)
        })?;
    }
    Ok(())
}

/// What bounds one call of a function.
struct Call<'a> {
    over: &'a (dyn Fn() -> bool + Send + Sync),
    /// The longest text that a function may return, in bytes.
    longest: usize,
}

impl Call<'_> {
    fn check(&self) -> rusqlite::Result<()> {
        if (self.over)() {
            return Err(failed("the query was stopped"));
        }
        Ok(())
    }
}

fn failed(why: &str) -> Error {
    Error::UserFunctionError(why.into())
}

fn text(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

fn arguments<const N: usize>(values: &[ValueRef<'_>]) -> rusqlite::Result<[String; N]> {
    let texts: Vec<String> = values.iter().take(N).map(text).collect();
    let texts = <[String; N]>::try_from(texts);
    texts.map_err(|_| failed("an argument is missing"))
}

/// Returns the place of a text in another, from 1; 0 if it is not there.
fn instr(values: &[ValueRef<'_>], _call: &Call<'_>) -> rusqlite::Result<Value> {
    let [within, wanted] = match values {
        // Each byte as one letter, so that the search of texts finds bytes, too.
        [ValueRef::Blob(within), ValueRef::Blob(wanted)] => {
            let letters = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
            [letters(within), letters(wanted)]
        }
        values => arguments::<2>(values)?,
    };
    let before = within.find(&wanted).and_then(|at| within.get(..at));
    let place = before.map_or(0, |before| before.chars().count() + 1);
    Ok(Value::Integer(i64::try_from(place).unwrap_or(i64::MAX)))
}

fn replace(values: &[ValueRef<'_>], call: &Call<'_>) -> rusqlite::Result<Value> {
    let [within, wanted, with] = arguments::<3>(values)?;
    if wanted.is_empty() {
        return Ok(Value::Text(within));
    }
    let more = with.len().saturating_sub(wanted.len());
    let size = within
        .matches(&wanted)
        .count()
        .saturating_mul(more)
        .saturating_add(within.len());
    // With shorter texts in the place of longer ones it only gets smaller.
    if more > 0 && size > call.longest {
        return Err(failed("string or blob too big"));
    }
    Ok(Value::Text(within.replace(&wanted, &with)))
}

/// At which end letters are taken off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Both,
}

fn trim(values: &[ValueRef<'_>], side: Side) -> rusqlite::Result<Value> {
    let [within, letters] = arguments::<2>(values)?;
    let letters: BTreeSet<char> = letters.chars().collect();
    let goes = |letter: char| letters.contains(&letter);
    let rest = match side {
        Side::Left => within.trim_start_matches(goes),
        Side::Right => within.trim_end_matches(goes),
        Side::Both => within.trim_matches(goes),
    };
    Ok(Value::Text(rest.to_owned()))
}

/// `text LIKE pattern ESCAPE escape` is `like(pattern, text, escape)`.
fn like(values: &[ValueRef<'_>], call: &Call<'_>) -> rusqlite::Result<Value> {
    let escape = values.get(2).map(text);
    let escape = match escape.as_deref().map(str::chars) {
        None => None,
        Some(mut letters) => match (letters.next(), letters.next()) {
            (Some(letter), None) => Some(letter),
            _ => return Err(failed("ESCAPE expression must be a single character")),
        },
    };
    matches(values, Syntax::Like { escape }, call)
}

fn glob(values: &[ValueRef<'_>], call: &Call<'_>) -> rusqlite::Result<Value> {
    matches(values, Syntax::Glob, call)
}

fn matches(values: &[ValueRef<'_>], syntax: Syntax, call: &Call<'_>) -> rusqlite::Result<Value> {
    let [pattern, within] = arguments::<2>(values)?;
    if pattern.len() > LONGEST_PATTERN {
        return Err(failed("LIKE or GLOB pattern too complex"));
    }
    let found = Pattern::of(&pattern, syntax).matches(&within, || (call.over)());
    let found = found.ok_or_else(|| failed("the query was stopped"))?;
    Ok(Value::Integer(i64::from(found)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    fn answer(connection: &Connection, expression: &str) -> String {
        let value = connection.query_row(&format!("SELECT {expression}"), [], |row| {
            row.get::<_, Value>(0)
        });
        value.map_or_else(|_| "refused".to_owned(), |value| format!("{value:?}"))
    }

    #[test]
    fn they_say_what_those_of_sqlite_say() {
        let theirs = Connection::open_in_memory().unwrap();
        let ours = Connection::open_in_memory().unwrap();
        let over: Over = Arc::new(|| false);
        register(&ours, 1_000_000, &over).unwrap();
        for expression in [
            "instr('hällo', 'lo')",
            "instr('hello', 'x')",
            "instr('hello', '')",
            "instr('', 'a')",
            "instr(NULL, 'a')",
            "instr(x'00ff01', x'01')",
            "instr(x'00ff01', x'02')",
            "instr(12345, 34)",
            "replace('a-b-c', '-', '++')",
            "replace('a-b-c', '', '++')",
            "replace('aaa', 'aa', NULL)",
            "trim('xxaxbxx', 'x')",
            "ltrim('xyaxy', 'yx')",
            "rtrim('xyaxy', 'yx')",
            "trim('  a ')",
            "'Abc' LIKE 'a%'",
            "'Abc' LIKE '_b_'",
            "'Äbc' LIKE 'äbc'",
            "'abc' LIKE 'b'",
            "'abc' LIKE '%b'",
            "'ababab' LIKE '%ab%ab'",
            "'' LIKE '%'",
            "'' LIKE ''",
            "'a' LIKE ''",
            "'50%' LIKE '50!%' ESCAPE '!'",
            "'500' LIKE '50!%' ESCAPE '!'",
            "'a!' LIKE 'a!' ESCAPE '!'",
            "'a' LIKE 'a' ESCAPE 'xx'",
            "NULL LIKE 'a'",
            "'abc' NOT LIKE 'a%'",
            "'abc' GLOB 'a*'",
            "'Abc' GLOB 'a*'",
            "'abc' GLOB 'a?c'",
            "'abc' GLOB 'a[a-c]c'",
            "'abc' GLOB 'a[^a-c]c'",
            "'a]c' GLOB 'a[]]c'",
            "'a-c' GLOB 'a[b-]c'",
            "'abc' GLOB 'a[bc'",
            "'xaby' GLOB '*a[b]*y'",
        ] {
            assert_eq!(
                answer(&ours, expression),
                answer(&theirs, expression),
                "{expression}"
            );
        }
        assert_eq!(answer(&ours, "unhex('00', ' ')"), "refused");
    }

    #[test]
    fn nothing_grows_beyond_the_longest_value() {
        let connection = Connection::open_in_memory().unwrap();
        let over: Over = Arc::new(|| false);
        register(&connection, 100, &over).unwrap();
        let grows = "length(replace('aaaaaaaaaa', 'a', 'bbbbbbbbbb'))";
        assert_eq!(answer(&connection, grows), "Integer(100)");
        let grows = "length(replace('aaaaaaaaaa', 'a', 'bbbbbbbbbbb'))";
        assert_eq!(answer(&connection, grows), "refused");
    }

    #[test]
    fn a_call_after_the_end_of_the_query_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        let over: Over = Arc::new(|| true);
        register(&connection, 100, &over).unwrap();
        for expression in ["instr('a', 'a')", "replace('a', 'a', 'b')", "'a' LIKE 'a'"] {
            assert_eq!(answer(&connection, expression), "refused", "{expression}");
        }
    }
}
