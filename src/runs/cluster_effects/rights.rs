//! What the account may do on the cluster. What it may is remembered as long as the connection lives, so that nothing is asked twice; what
//! it may not is asked anew each time, since somebody is about to mend it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::errors::of_read;
use crate::cluster::{Access, Cluster, ClusterError};
use crate::model::{GroupKind, limits};
use crate::runs::effects::{EffectError, Serving};

/// Asks for rights, and remembers.
#[derive(Debug, Clone, Default)]
pub(super) struct RightsDoor {
    allowed: Arc<Mutex<BTreeSet<Access>>>,
}

impl RightsDoor {
    /// Returns what the account may not do, of what is asked. Several questions about one namespace are one request, as long as its rules
    /// say yes; what they leave open is asked one by one, since other things than roles may allow it.
    pub(super) async fn refused(
        &self,
        cluster: &Cluster,
        asked: &[Access],
    ) -> Result<Vec<Access>, EffectError> {
        let mut open: BTreeMap<Option<&str>, Vec<&Access>> = BTreeMap::new();
        {
            let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
            for access in asked.iter().filter(|access| !allowed.contains(*access)) {
                open.entry(access.namespace.as_deref())
                    .or_default()
                    .push(access);
            }
        }
        let mut refused = Vec::new();
        for (namespace, mut of_it) in open {
            if let Some(namespace) = namespace
                && of_it.len() >= limits::RULES_QUESTIONS_MIN
            {
                let rules = cluster.rules(namespace).await.map_err(of_read)?;
                of_it.retain(|access| {
                    let allows = rules.allow(access);
                    if allows {
                        self.remember(access);
                    }
                    !allows
                });
            }
            for access in of_it {
                if cluster.may(access, None).await.map_err(of_read)? {
                    self.remember(access);
                } else {
                    refused.push(access.clone());
                }
            }
        }
        Ok(refused)
    }

    fn remember(&self, access: &Access) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if allowed.len() >= limits::RIGHTS_REMEMBERED_MAX {
            allowed.clear();
        }
        allowed.insert(access.clone());
    }
}

/// Returns how a cluster serves a kind.
pub(super) async fn serving(
    cluster: &Cluster,
    kind: &GroupKind,
    version: &str,
) -> Result<Serving, EffectError> {
    match cluster.resolve(kind, Some(version)).await {
        Ok(served) => Ok(Serving::As(served.plural)),
        Err(ClusterError::KindUnknown { .. }) => {
            let known = cluster.known_served().unwrap_or_default();
            Ok(Serving::Not {
                closest: known.closest(kind),
            })
        }
        Err(error) => Err(of_read(error)),
    }
}
