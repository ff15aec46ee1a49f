//! Whether a channel may move from one version to another. Pull request check, command line and agent ask this one function.

use super::catalog::{CatalogModule, MovePolicy};
use super::output::UpgradePolicy;
use crate::model::{ChannelName, Code, ModuleName, ModuleVersion};

/// Why a channel may not move, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRefusal {
    /// The stable code.
    pub code: Code,
    /// What is wrong, a lowercase fragment.
    pub message: String,
    /// The lines that would mend it.
    pub help: String,
}

/// A channel's move from one version to another.
#[derive(Debug, Clone, Copy)]
pub struct Move<'a> {
    /// The module.
    pub module: &'a ModuleName,
    /// The channel; none for the version of a mandatory module.
    pub channel: Option<&'a ChannelName>,
    /// The version that the channel offers now.
    pub from: &'a str,
    /// The version that it is to offer.
    pub to: &'a str,
}

/// Judges a move of a channel. The versions of `catalog` are the known releases.
///
/// # Errors
///
/// When the move goes to a yanked version, goes back, has no order, or skips versions where the policy is Linear, and no
/// edge of the ReleaseGraph and no yanked version allows it.
pub fn judge_move(
    wanted: Move<'_>,
    catalog: &CatalogModule,
    policy: MovePolicy<'_>,
) -> Result<(), MoveRefusal> {
    let Move { from, to, .. } = wanted;
    if from == to || policy.upgrades == UpgradePolicy::Judged {
        return Ok(());
    }
    if let Some(reason) = catalog.graph.yanked.get(to) {
        return Err(wanted.refuse_yanked(reason.as_deref()));
    }
    let has_edge = catalog
        .graph
        .edges
        .iter()
        .any(|edge| edge.from == from && edge.to == to);
    if has_edge || catalog.graph.yanked.contains_key(from) {
        return Ok(());
    }
    let (Ok(old), Ok(new)) = (ModuleVersion::parse(from), ModuleVersion::parse(to)) else {
        return Err(wanted.unordered());
    };
    match old.partial_cmp(&new) {
        Some(std::cmp::Ordering::Greater) => Err(wanted.back()),
        None if !allows_suffix(policy.suffixes, &new) => Err(wanted.unordered()),
        None | Some(std::cmp::Ordering::Equal) => Ok(()),
        Some(std::cmp::Ordering::Less) => match policy.upgrades {
            UpgradePolicy::Direct | UpgradePolicy::Judged => Ok(()),
            UpgradePolicy::Linear => match stops_between(catalog, &old, &new).as_slice() {
                [] => Ok(()),
                stops => Err(wanted.skips(stops)),
            },
        },
    }
}

/// Returns the versions that an upgrade goes through: the latest patch of every known minor between the two, lowest first.
/// Pre-releases and yanked versions are no stops.
pub fn stops_between<'a>(
    catalog: &'a CatalogModule,
    from: &ModuleVersion,
    to: &ModuleVersion,
) -> Vec<&'a ModuleVersion> {
    let mut stops: Vec<&ModuleVersion> = catalog
        .versions
        .iter()
        .filter(|(text, _)| !catalog.graph.yanked.contains_key(*text))
        .map(|(_, known)| &known.version)
        .filter(|known| {
            known.is_release() && from.minor() < known.minor() && known.minor() < to.minor()
        })
        .collect();
    stops.sort_by_key(|version| std::cmp::Reverse(version.core()));
    stops.dedup_by_key(|version| version.minor());
    stops.reverse();
    stops
}

/// Returns whether a version's form is allowed by a channel's suffixes: a release always is.
pub(super) fn allows_suffix(suffixes: &[String], version: &ModuleVersion) -> bool {
    version.is_release()
        || suffixes.iter().any(|allowed| {
            version
                .suffix()
                .strip_prefix(allowed.as_str())
                .is_some_and(|rest| {
                    // `rc` allows `rc`, `rc2`, `rc-2` and `rc.2`, but not `rce`.
                    !rest.starts_with(|letter: char| letter.is_ascii_alphabetic())
                })
        })
}

// === impl Move ===

impl Move<'_> {
    fn what(&self) -> String {
        match self.channel {
            Some(channel) => format!("channel `{channel}` of {}", self.module),
            None => format!("the mandatory version of {}", self.module),
        }
    }

    fn refuse_yanked(&self, reason: Option<&str>) -> MoveRefusal {
        let reason = reason.map(|text| format!(": {text}")).unwrap_or_default();
        MoveRefusal {
            code: Code::GraphYanked,
            message: format!(
                "{} would go to {}, which is yanked{reason}",
                self.what(),
                self.to
            ),
            help: format!(
                "choose another version than {}; modules/{}/release-graph.yaml yanks it",
                self.to, self.module
            ),
        }
    }

    fn back(&self) -> MoveRefusal {
        MoveRefusal {
            code: Code::ChannelDowngrade,
            message: format!(
                "{} would go back from {} to {}",
                self.what(),
                self.from,
                self.to
            ),
            help: format!(
                "runtimes never install a lower version; publish a higher one. To leave a broken version, yank it in {graph}:\n\
                 yanked:\n  - version: {from}\n    reason: why it must not be used\n\
                 or allow this way back there:\n{edge}",
                graph = self.graph_file(),
                from = self.from,
                edge = self.edge(),
            ),
        }
    }

    fn unordered(&self) -> MoveRefusal {
        MoveRefusal {
            code: Code::ChannelDowngrade,
            message: format!(
                "{} would go from {} to {}, and which of them is higher cannot be told",
                self.what(),
                self.from,
                self.to
            ),
            help: format!("allow the step in {}:\n{}", self.graph_file(), self.edge()),
        }
    }

    fn skips(&self, stops: &[&ModuleVersion]) -> MoveRefusal {
        let names: Vec<_> = stops.iter().map(ToString::to_string).collect();
        let next = &names[0];
        let lines = match self.channel {
            Some(channel) => format!("  - channel: {channel}\n    version: {next}"),
            None => format!("mandatory:\n  version: {next}"),
        };
        MoveRefusal {
            code: Code::ChannelSkipsVersions,
            message: format!(
                "{} would go from {} to {} and skip {}",
                self.what(),
                self.from,
                self.to,
                names.join(", ")
            ),
            help: format!(
                "go one hop at a time; the next one is {next}:\n{lines}\n\
                 or allow the step in {}:\n{}",
                self.graph_file(),
                self.edge()
            ),
        }
    }

    fn graph_file(&self) -> String {
        format!("modules/{}/release-graph.yaml", self.module)
    }

    fn edge(&self) -> String {
        format!("edges:\n  - from: {}\n    to: {}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::catalog::{CatalogVersion, Edge};
    use super::*;
    use crate::model::{Digest, Place};

    fn catalog(versions: &[&str]) -> CatalogModule {
        let versions = versions.iter().map(|text| {
            let version = CatalogVersion {
                version: ModuleVersion::parse(text).unwrap(),
                digest: Digest::from_text("v1:0"),
                files: Vec::new(),
                is_mandatory: false,
                place: Place::whole_file("modules/keda"),
            };
            ((*text).to_owned(), std::sync::Arc::new(version))
        });
        CatalogModule {
            versions: versions.collect(),
            ..CatalogModule::default()
        }
    }

    fn judge(module: &CatalogModule, from: &str, to: &str, policy: UpgradePolicy) -> Option<Code> {
        let wanted = Move {
            module: &ModuleName::new("keda").unwrap(),
            channel: Some(&ChannelName::new("regular").unwrap()),
            from,
            to,
        };
        let suffixes = ["rc".to_owned()];
        let policy = MovePolicy {
            upgrades: policy,
            suffixes: &suffixes,
        };
        judge_move(wanted, module, policy)
            .err()
            .map(|refusal| refusal.code)
    }

    #[rstest]
    #[case("1.0.0", "1.0.0", None)]
    #[case("1.0.0", "1.0.5", None)]
    #[case("1.0.0", "1.1.0", None)]
    #[case("1.0.0", "1.2.0", Some(Code::ChannelSkipsVersions))]
    #[case("1.0.0", "2.0.0", Some(Code::ChannelSkipsVersions))]
    #[case("1.1.3", "1.2.0", None)]
    #[case("1.2.0", "1.1.3", Some(Code::ChannelDowngrade))]
    #[case("1.2.0", "1.2.0-rc1", Some(Code::ChannelDowngrade))]
    #[case("1.2.0-alpha", "1.2.0-beta", Some(Code::ChannelDowngrade))]
    #[case("1.2.0-alpha", "1.2.0-rc1", None)]
    #[case("1.2.0", "3.0.0", None)]
    fn linear_moves(#[case] from: &str, #[case] to: &str, #[case] expected: Option<Code>) {
        let catalog = catalog(&["1.0.0", "1.1.0", "1.1.3", "1.2.0", "1.3.0-rc1", "3.0.0"]);
        assert_eq!(judge(&catalog, from, to, UpgradePolicy::Linear), expected);
    }

    #[test]
    fn direct_moves_go_any_distance_upwards_only() {
        let catalog = catalog(&["1.0.0", "1.1.0", "1.2.0"]);
        let judge = |from, to| judge(&catalog, from, to, UpgradePolicy::Direct);
        assert_eq!(judge("1.0.0", "1.2.0"), None);
        assert_eq!(judge("1.2.0", "1.0.0"), Some(Code::ChannelDowngrade));
    }

    #[test]
    fn the_graph_allows_and_forbids() {
        let mut catalog = catalog(&["1.0.0", "1.1.0", "1.2.0"]);
        catalog.graph.edges.push(Edge {
            from: "1.0.0".to_owned(),
            to: "1.2.0".to_owned(),
        });
        catalog.graph.yanked.insert("1.1.0".to_owned(), None);
        let judge = |from, to| judge(&catalog, from, to, UpgradePolicy::Linear);
        assert_eq!(judge("1.0.0", "1.2.0"), None);
        assert_eq!(judge("1.1.0", "1.0.0"), None);
        assert_eq!(judge("1.0.0", "1.1.0"), Some(Code::GraphYanked));
    }

    #[test]
    fn stops_are_the_latest_patch_of_each_minor() {
        let catalog = catalog(&["1.1.0", "1.1.10", "1.1.9", "1.2.0", "1.3.0-rc1", "2.0.0"]);
        let version = |text| ModuleVersion::parse(text).unwrap();
        let stops = stops_between(&catalog, &version("1.0.0"), &version("2.1.0"));
        let stops: Vec<_> = stops.iter().map(ToString::to_string).collect();
        assert_eq!(stops, ["1.1.10", "1.2.0", "2.0.0"]);
    }
}
