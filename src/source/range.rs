//! A range of versions over the tags of a repository: which tag a source follows.
//!
//! The grammar is that of Cargo, read by the `semver` crate: `1.4` and `^1.4` mean `>=1.4.0, <2.0.0`, comparators are joined
//! with commas, and a pre-release matches only when a comparator names one of the same version.

use std::fmt;
use std::str::FromStr;

use semver::{Version, VersionReq};

use super::error::SourceError;
use crate::model::limits::NAMED_IN_MESSAGE_MAX;

/// A range of versions, as `^1.4` or `>=1.4.0, <1.6.0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionRange(VersionReq);

// === impl VersionRange ===

impl VersionRange {
    /// Returns whether a tag is a version inside the range; it may have one leading `v`.
    pub fn contains(&self, tag: &str) -> bool {
        version(tag).is_some_and(|version| self.0.matches(&version))
    }

    /// Returns the tag with the highest version inside the range. Of two names for one version (`1.0.0` and `v1.0.0`) the
    /// alphabetically last one wins, so that the answer does not depend on the server's order.
    pub(super) fn highest<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        tags.filter_map(|tag| Some((version(tag)?, tag)))
            .filter(|(version, _)| self.0.matches(version))
            .max()
            .map(|(_, tag)| tag)
    }

    /// Returns the few versions that are closest to the range, in order, for a message that nothing is inside it.
    pub(super) fn nearest<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut versions: Vec<_> = tags.filter_map(|tag| Some((version(tag)?, tag))).collect();
        versions.sort();
        let start = self.start();
        let split = versions.partition_point(|(version, _)| *version < start);
        let (below, above) = versions.split_at(split);
        // The next ones on both sides, one below and one above in turn, as far as there are some.
        let (mut below, mut above) = (below.iter().rev(), above.iter());
        let mut nearest = Vec::new();
        while nearest.len() < NAMED_IN_MESSAGE_MAX {
            let before = nearest.len();
            nearest.extend(below.next());
            nearest.extend(above.next());
            if nearest.len() == before {
                break;
            }
        }
        nearest.truncate(NAMED_IN_MESSAGE_MAX);
        nearest.sort();
        nearest.into_iter().map(|(_, tag)| *tag).collect()
    }

    /// The highest version that a comparator names: where the range is, roughly.
    fn start(&self) -> Version {
        let named = self.0.comparators.iter().map(|comparator| Version {
            major: comparator.major,
            minor: comparator.minor.unwrap_or(0),
            patch: comparator.patch.unwrap_or(0),
            pre: comparator.pre.clone(),
            build: semver::BuildMetadata::EMPTY,
        });
        named.max().unwrap_or(Version::new(0, 0, 0))
    }
}

impl FromStr for VersionRange {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        text.parse()
            .map(Self)
            .map_err(|error: semver::Error| SourceError::RangeInvalid {
                range: text.to_owned(),
                reason: error.to_string(),
            })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A refspec that matches nothing: what is left of a download is the listing.
pub(super) const LIST_ONLY: &str = "+refs/fairway/none:refs/fairway/none";

/// Says what there is instead of a tag in the range. A server lists an annotated tag twice; the second name is no version.
pub(super) fn words(nearest: &[&str], tags: usize) -> String {
    match nearest {
        [] if tags == 0 => "it has no tags".to_owned(),
        [] => "none of its tags is a version, as `v1.2.3`".to_owned(),
        [one] => format!("the nearest is {one}"),
        [most @ .., last] => format!("the nearest are {} and {last}", most.join(", ")),
    }
}

/// Returns whether the version of one tag is above that of another; false when one of them is no version.
pub(super) fn is_above(tag: &str, other: &str) -> bool {
    matches!((version(tag), version(other)), (Some(tag), Some(other)) if tag > other)
}

fn version(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TAGS: [&str; 9] = [
        "v1.9.0",
        "v1.10.0",
        "1.2.0",
        "v2.0.0-rc.2",
        "v2.0.0-rc.10",
        "v1.11.0-rc.1",
        "nightly",
        "v1",
        "vv3.0.0",
    ];

    #[rstest]
    #[case::caret("^1.2", Some("v1.10.0"))]
    #[case::bare_is_caret("1.2.0", Some("v1.10.0"))]
    #[case::tilde("~1.9", Some("v1.9.0"))]
    #[case::wildcard("1.9.*", Some("v1.9.0"))]
    #[case::any_but_pre_releases("*", Some("v1.10.0"))]
    #[case::both_ends(">=1.2.0, <1.9.0", Some("1.2.0"))]
    #[case::a_pre_release_is_named(">=2.0.0-rc.1", Some("v2.0.0-rc.10"))]
    #[case::a_pre_release_of_another_version(">=1.10.0-rc.1, <3", Some("v1.10.0"))]
    #[case::none("^3", None)]
    fn the_highest_version_inside_the_range_wins(
        #[case] range: &str,
        #[case] expected: Option<&str>,
    ) {
        let range: VersionRange = range.parse().unwrap();
        assert_eq!(range.highest(TAGS.into_iter()), expected);
        assert_eq!(range.highest(TAGS.into_iter().rev()), expected);
    }

    #[test]
    fn a_release_is_above_its_pre_releases() {
        let range: VersionRange = ">=2.0.0-rc.1".parse().unwrap();
        let tags = TAGS.into_iter().chain(["v2.0.0"]);
        assert_eq!(range.highest(tags), Some("v2.0.0"));
    }

    #[rstest]
    #[case::beyond("^3", &["v1.11.0-rc.1", "v2.0.0-rc.2", "v2.0.0-rc.10"])]
    #[case::between("~1.5", &["1.2.0", "v1.9.0", "v1.10.0"])]
    #[case::before("~0.1", &["1.2.0", "v1.9.0", "v1.10.0"])]
    fn the_nearest_versions_are_named_when_nothing_matches(
        #[case] range: &str,
        #[case] expected: &[&str],
    ) {
        let range: VersionRange = range.parse().unwrap();
        assert_eq!(range.highest(TAGS.into_iter()), None);
        let nearest = range.nearest(TAGS.into_iter());
        assert_eq!(nearest, expected);
    }

    #[rstest]
    #[case(">=1.0.0 <2.0.0", "expected comma")]
    #[case("^1 || ^2", "expected comma")]
    #[case("v1", "unexpected character 'v'")]
    #[case("", "unexpected end of input")]
    fn what_is_no_range_is_said(#[case] text: &str, #[case] reason: &str) {
        let message = text.parse::<VersionRange>().unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
}
