//! What differs between two revisions for those who use modules, so that they get it first.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::Published;
use super::kyma::Kyma;
use crate::model::{DesiredObject, GroupKind, names};

/// The channels of modules that offer something else than before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedChannels(BTreeSet<(String, String)>);

/// For each module and channel, what it offers: the version, and the digest of its template.
type Offers<'a> = BTreeMap<(&'a str, &'a str), (&'a str, Option<&'a str>)>;

// === impl ChangedChannels ===

impl ChangedChannels {
    /// Compares what home has of two revisions.
    pub fn between(before: &Published, after: &Published) -> Self {
        let (before, after) = (offers(before), offers(after));
        let changed = after
            .iter()
            .filter(|(place, offer)| before.get(*place) != Some(*offer))
            .chain(
                before
                    .iter()
                    .filter(|(place, _)| !after.contains_key(*place)),
            );
        Self(
            changed
                .map(|((module, channel), _)| ((*module).to_owned(), (*channel).to_owned()))
                .collect(),
        )
    }

    /// Returns whether the runtime of a Kyma follows one of them.
    pub fn concern(&self, kyma: &Kyma) -> bool {
        self.0.iter().any(|(module, channel)| {
            let used = kyma.modules.get(module);
            used.is_some_and(|used| used.channel == *channel)
        })
    }
}

fn offers(published: &Published) -> Offers<'_> {
    let of_kind = |kind: &'static str| {
        let kind = GroupKind::new(names::KYMA_GROUP, kind);
        published
            .desired
            .objects()
            .map(AsRef::as_ref)
            .filter(move |object: &&DesiredObject| object.key.kind == kind)
    };
    let templates: BTreeMap<&str, &str> = of_kind("ModuleTemplate")
        .map(|object| (object.key.name.as_str(), object.digest.as_str()))
        .collect();
    let mut offers = Offers::new();
    for release in of_kind("ModuleReleaseMeta") {
        let module = release.key.name.as_str();
        let channels = release.body["spec"]["channels"].as_array();
        for entry in channels.into_iter().flatten() {
            let channel = entry["channel"].as_str().unwrap_or_default();
            let version = entry["version"].as_str().unwrap_or_default();
            let template = templates
                .get(format!("{module}-{version}").as_str())
                .copied();
            offers.insert((module, channel), (version, template));
        }
    }
    offers
}
