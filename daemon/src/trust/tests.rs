use std::fs;

use loopd_store::{Location, SqliteStore};
use tempfile::TempDir;

use super::*;
use crate::discovery::hooks::HookPlaces;

const HOOKS: &str = r#"{"hooks":{"preToolUse":[{"bash":"x"}]}}"#;

fn project() -> (TempDir, HookPlaces) {
    let root = TempDir::new().expect("a folder");
    let file = root.path().join(".github/hooks/a.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
    fs::write(&file, HOOKS).expect("the file is written");
    let home = root.path().join("home");
    let places = HookPlaces::of(&BTreeMap::new(), &home, root.path(), root.path());
    (root, places)
}

async fn memory() -> SqliteStore {
    let store = SqliteStore::open(Location::Memory).await;
    store.expect("a store in memory")
}

fn state(gated: &GatedHooks) -> &HookState {
    let [gated] = gated.hooks.as_slice() else {
        panic!("{gated:?}");
    };
    &gated.state
}

#[tokio::test]
async fn a_folder_that_an_earlier_version_trusted_is_not_trusted_with_hooks() {
    let (root, places) = project();
    let store = memory().await;
    let folder = root.path().to_string_lossy();
    let trusted = approvals::trust_folder(&store, &folder).await;
    trusted.expect("the folder is trusted");
    let gated = load_hooks(&store, places, Vec::new()).await;
    assert_eq!(state(&gated), &HookState::NotTrusted { changed: false });
    assert_eq!(gated.running().count(), 0);
    assert_eq!((gated.untrusted.len(), gated.problems.len()), (1, 0));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_trusts_nothing() {
    let (root, places) = project();
    let store = memory().await;
    let real = root.path().canonicalize().expect("the folder is there");
    let fact = store.put_fact(SCOPE, &real.to_string_lossy(), Some(true.into()));
    fact.await.expect("the fact is stored");
    let gated = load_hooks(&store, places, Vec::new()).await;
    assert_eq!(state(&gated), &HookState::NotTrusted { changed: true });
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_folder_is_the_folder() {
    let (root, places) = project();
    let links = TempDir::new().expect("a folder");
    let link = links.path().join("link");
    std::os::unix::fs::symlink(root.path(), &link).expect("the link is made");
    let store = memory().await;
    let content = ProjectContent::read(&ProjectLookup {
        places: HookPlaces::of(&BTreeMap::new(), links.path(), &link, &link),
        root: project_root(&link),
        cwd: link,
    });
    let recorded = record(&store, &content).await;
    recorded.expect("the content is trusted");
    assert_eq!(
        state(&load_hooks(&store, places, Vec::new()).await),
        &HookState::Runs
    );
}
