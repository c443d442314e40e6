//! Remembers how many tokens texts have that go out again with every request: the system message and
//! the definitions of tools.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;

use loopd_kernel::model::ToolSpec;
use loopd_kernel::tokens;

/// The most texts that are remembered.
const MOST_TEXTS: usize = 4_096;

/// The tokens of a definition besides its texts.
const DEFINITION_TOKENS: u64 = 12;

/// The numbers of tokens by the hash of their text.
#[derive(Debug, Default)]
pub struct TokenCache(Mutex<HashMap<u64, u64>>);

impl TokenCache {
    /// Returns how many tokens a text has.
    pub fn of_text(&self, text: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        self.known_or(hasher.finish(), || tokens::count(text))
    }

    /// Returns how many tokens the definition of a tool has.
    pub fn of_tool(&self, tool: &ToolSpec) -> u64 {
        tool.counted.get_or(|| {
            let mut hasher = DefaultHasher::new();
            tool.name.hash(&mut hasher);
            tool.description.hash(&mut hasher);
            tool.parameters.hash(&mut hasher);
            self.known_or(hasher.finish(), || {
                DEFINITION_TOKENS
                    + tokens::count(&tool.name)
                    + tokens::count(&tool.description)
                    + tokens::count(&tool.parameters.to_string())
            })
        })
    }

    fn known_or(&self, key: u64, count: impl FnOnce() -> u64) -> u64 {
        if let Some(known) = self.0.lock().get(&key) {
            return *known;
        }
        let counted = count();
        let mut known = self.0.lock();
        if known.len() >= MOST_TEXTS {
            known.clear();
        }
        known.insert(key, counted);
        counted
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_remembered_is_what_is_counted() {
        let cache = TokenCache::default();
        for _ in 0..2 {
            assert_eq!(cache.of_text("hello world"), 2);
        }
        let tool = |description: &str| ToolSpec {
            name: "look".to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object"}),
            counted: loopd_kernel::model::CountedOnce::default(),
        };
        let (short, long) = (tool("Looks."), tool(&"Looks around. ".repeat(50)));
        assert!(cache.of_tool(&long) > cache.of_tool(&short) + 100);
        assert_eq!(cache.of_tool(&short), cache.of_tool(&tool("Looks.")));
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let cache = TokenCache::default();
        for number in 0..MOST_TEXTS + 10 {
            cache.of_text(&number.to_string());
        }
        assert!(cache.0.lock().len() <= MOST_TEXTS);
    }
}
