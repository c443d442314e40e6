//! The members of an entry, taken out one by one, so that those nobody asks for can be told.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

/// The most arguments, variables, headers or names of tools.
const MOST_ITEMS: usize = 1_000;
/// The longest time that can be asked for.
const LONGEST_TIME: Duration = Duration::from_secs(24 * 3600);

/// Takes members out of an entry.
pub(super) struct Members<'a> {
    pub(super) config: &'a Map<String, Value>,
    pub(super) taken: Vec<&'a str>,
    /// Members of members that nobody knows.
    pub(super) unknown: Vec<String>,
}

impl<'a> Members<'a> {
    /// Returns the first of these members that is there.
    pub(super) fn get(&mut self, names: &[&'a str]) -> Option<(&'a str, &'a Value)> {
        self.taken.extend(names);
        let mut found = names
            .iter()
            .filter_map(|name| Some((*name, self.config.get(*name)?)));
        found.find(|(_, value)| !value.is_null())
    }

    pub(super) fn text(&mut self, names: &[&'a str]) -> Result<Option<String>, String> {
        let found = self.get(names);
        found
            .map(|(name, value)| {
                let text = value.as_str().map(str::to_owned);
                text.ok_or_else(|| format!("has a `{name}` that is no text"))
            })
            .transpose()
    }

    pub(super) fn flag(&mut self, names: &[&'a str]) -> Result<Option<bool>, String> {
        let found = self.get(names);
        found
            .map(|(name, value)| {
                let flag = value.as_bool();
                flag.ok_or_else(|| format!("has a `{name}` that is neither true nor false"))
            })
            .transpose()
    }

    pub(super) fn texts(&mut self, names: &[&'a str]) -> Result<Option<Vec<String>>, String> {
        let Some((name, value)) = self.get(names) else {
            return Ok(None);
        };
        let wrong = || format!("has a `{name}` that is no list of texts");
        let list = value.as_array().ok_or_else(wrong)?;
        if list.len() > MOST_ITEMS {
            return Err(format!("has a `{name}` with more than {MOST_ITEMS} items"));
        }
        let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
        texts
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong)
            .map(Some)
    }

    /// Returns a map of texts. Numbers and truth values are written as texts: people leave out quotes.
    pub(super) fn map(&mut self, names: &[&'a str]) -> Result<BTreeMap<String, String>, String> {
        let Some((name, value)) = self.get(names) else {
            return Ok(BTreeMap::new());
        };
        let wrong = || format!("has a `{name}` that is no object of texts");
        let object = value.as_object().ok_or_else(wrong)?;
        if object.len() > MOST_ITEMS {
            return Err(format!(
                "has a `{name}` with more than {MOST_ITEMS} members"
            ));
        }
        let mut map = BTreeMap::new();
        for (key, value) in object {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                Value::Null => continue,
                Value::Array(_) | Value::Object(_) => return Err(wrong()),
            };
            map.insert(key.clone(), text);
        }
        Ok(map)
    }

    pub(super) fn time(
        &mut self,
        milliseconds: &[&'a str],
        seconds: &[&'a str],
    ) -> Result<Option<Duration>, String> {
        let (found, unit) = match self.get(milliseconds) {
            Some(found) => (Some(found), 0.001),
            None => (None, 1.0),
        };
        let Some((name, value)) = found.or_else(|| self.get(seconds)) else {
            self.get(seconds);
            return Ok(None);
        };
        let number = value.as_f64().filter(|number| *number > 0.0);
        let number = number.ok_or_else(|| format!("has a `{name}` that is no number above 0"))?;
        let time = Duration::try_from_secs_f64(number * unit).unwrap_or(LONGEST_TIME);
        Ok(Some(time.min(LONGEST_TIME)))
    }
}
