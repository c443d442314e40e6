//! SQLite on a file and in memory, held against the contract of every store.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::contract::{Space, Subject};
use crate::tests::keeps_every_promise;
use crate::{Location, SqliteStore, Store};

/// A store over SQLite; the folder is removed with it.
struct Sqlite {
    store: SqliteStore,
    location: Location,
    _folder: tempfile::TempDir,
}

impl Sqlite {
    async fn on_disk() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::open(Location::File(folder.path().join("loopd.db")), folder).await
    }

    async fn in_memory() -> Self {
        Self::open(Location::Memory, tempfile::tempdir().unwrap()).await
    }

    async fn open(location: Location, folder: tempfile::TempDir) -> Self {
        Self {
            store: SqliteStore::open(location.clone()).await.unwrap(),
            location,
            _folder: folder,
        }
    }
}

impl Subject for Sqlite {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn commits(&self) -> u64 {
        self.store.stats().commits
    }

    fn set_space(&self, space: Space) {
        let mut disk = self.store.disk.lock();
        let connection = disk.connection().unwrap();
        let pages: i64 = match space {
            Space::Free => 1 << 30,
            Space::Full => connection
                .query_row("PRAGMA page_count", [], |row| row.get(0))
                .unwrap(),
        };
        let limit = format!("PRAGMA max_page_count = {pages}");
        connection.query_row(&limit, [], |_| Ok(())).unwrap();
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Arc<dyn Store>>> {
        async {
            if self.location == Location::Memory {
                return None;
            }
            let again = SqliteStore::open(self.location.clone()).await.unwrap();
            Some(Arc::new(again) as Arc<dyn Store>)
        }
        .boxed()
    }
}

#[tokio::test]
async fn sqlite_on_disk_keeps_every_promise() {
    keeps_every_promise(Sqlite::on_disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_on_disk_keeps_every_promise_among_threads() {
    keeps_every_promise(Sqlite::on_disk).await;
}

#[tokio::test]
async fn sqlite_in_memory_keeps_every_promise() {
    keeps_every_promise(Sqlite::in_memory).await;
}
