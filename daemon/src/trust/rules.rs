//! Which permission rules of settings count.

use std::path::PathBuf;

use loopd_store::Store;

use super::{OwnContent, TrustedContent, shell_word};
use crate::discovery::Problem;
use crate::discovery::settings_rules::{FileRules, RulePlaces, load};
use loopd_kernel::policy::settings::SettingsRules;

/// The rules that count, and what people should know about them.
#[derive(Debug, Default)]
pub struct GatedRules {
    pub rules: SettingsRules,
    pub problems: Vec<Problem>,
    /// What the user's own settings allow.
    pub own: Vec<OwnContent>,
    /// The folders of projects whose rules deny or ask.
    pub folders: Vec<PathBuf>,
}

/// Reads the rules of settings. What denies or asks always counts; what allows counts if it is the
/// user's own, or in a folder that is trusted with exactly this block.
pub async fn load_rules(store: &dyn Store, places: RulePlaces) -> GatedRules {
    let read = tokio::task::spawn_blocking(move || load(&places)).await;
    let files = read.unwrap_or_default();
    let mut gated = GatedRules::default();
    if files.is_empty() {
        return gated;
    }
    // A record that cannot be read trusts nothing; `load_hooks` tells why.
    let trusted = TrustedContent::read(store).await.unwrap_or_default();
    for mut file in files {
        gated.problems.append(&mut file.problems);
        gated.problems.extend(withheld(&trusted, &mut file));
        if file.folder.is_none() && !file.rules.allow.is_empty() {
            gated.own.push(OwnContent {
                file: file.file,
                line: None,
                what: "the list `allow` of its `permissions`".to_owned(),
                hash: file.hash,
                may_allow: true,
            });
        }
        if !(file.rules.deny.is_empty() && file.rules.ask.is_empty()) {
            gated.folders.extend(file.folder);
        }
        let rules = &mut gated.rules;
        rules.deny.append(&mut file.rules.deny);
        rules.ask.append(&mut file.rules.ask);
        rules.allow.append(&mut file.rules.allow);
        rules.unread.append(&mut file.rules.unread);
    }
    gated
}

/// Takes out what a file allows if its folder is not trusted with it, and says so.
fn withheld(trusted: &TrustedContent, file: &mut FileRules) -> Option<Problem> {
    let folder = file.folder.as_ref()?;
    if file.rules.allow.is_empty() || trusted.covers(folder, &file.hash) {
        return None;
    }
    file.rules.allow.clear();
    let what = format!(
        "its rules in `allow` do not count, because this folder is not trusted with them; to look and to \
         trust: loop trust {}",
        shell_word(folder)
    );
    Some(Problem::new(&file.file, what))
}
