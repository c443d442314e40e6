//! The model lists that providers gave, so that a turn need not ask again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use loopd_kernel::model::ModelInfo;

/// Lists by provider, kept for the life of the daemon.
#[derive(Default)]
pub struct ModelLists {
    models: Mutex<HashMap<String, Arc<Vec<ModelInfo>>>>,
}

/// The largest number of model lists kept.
const LISTS: usize = 64;

impl ModelLists {
    pub fn known(&self, key: &str) -> Option<Arc<Vec<ModelInfo>>> {
        self.models.lock().get(key).cloned()
    }

    pub fn learn(&self, key: String, list: Arc<Vec<ModelInfo>>) {
        let mut models = self.models.lock();
        if models.len() >= LISTS {
            models.clear();
        }
        models.insert(key, list);
    }
}
