//! What the name of a model tells about it: who made it, whether it is small, whether it chats.

/// Words in the names of small and fast models.
const SMALL: [&str; 6] = ["mini", "haiku", "flash", "small", "lite", "nano"];

/// Words in the names of models that do something else than answering in text.
const NO_CHAT: [&str; 13] = [
    "embedding",
    "embeddings",
    "embed",
    "rerank",
    "moderation",
    "tts",
    "whisper",
    "transcribe",
    "audio",
    "realtime",
    "image",
    "video",
    "guard",
];

/// How the words of a family's models begin.
const FAMILIES: [(&str, &[&str]); 12] = [
    ("claude", &["claude", "sonnet", "opus", "haiku"]),
    ("gpt", &["gpt", "chatgpt", "codex", "o1", "o3", "o4"]),
    ("gemini", &["gemini", "gemma"]),
    ("grok", &["grok"]),
    ("llama", &["llama", "codellama"]),
    (
        "mistral",
        &["mistral", "mixtral", "ministral", "codestral", "devstral"],
    ),
    ("qwen", &["qwen", "qwq"]),
    ("deepseek", &["deepseek"]),
    ("phi", &["phi"]),
    ("kimi", &["kimi", "moonshot"]),
    ("glm", &["glm"]),
    ("command", &["command", "cohere"]),
];

/// The words of a name, in small letters.
fn words(model: &str) -> impl Iterator<Item = String> + '_ {
    model
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Whether a word stands in a name by itself: `mini` is in `o4-mini`, but not in `gemini`.
pub(super) fn has_word(model: &str, wanted: &str) -> bool {
    words(model).any(|word| word == wanted)
}

pub(super) fn is_small(model: &str) -> bool {
    SMALL.iter().any(|small| has_word(model, small))
}

/// Whether it can be chosen without anybody having named it.
pub(super) fn is_chat(model: &str) -> bool {
    !NO_CHAT.iter().any(|word| has_word(model, word))
}

/// Who made a model, where its name tells.
pub(super) fn family(model: &str) -> Option<&'static str> {
    // Of `azure/gpt-5` the provider's name says nothing.
    let own = model.rsplit('/').next().unwrap_or(model);
    words(own).find_map(|word| {
        let begins = |start: &&str| {
            let rest = word.strip_prefix(start);
            // `gpt4` and `qwen3` are written like this, `phind` is not `phi`.
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        };
        let found = FAMILIES
            .iter()
            .find(|(_, starts)| starts.iter().any(&begins));
        found.map(|(family, _)| *family)
    })
}
