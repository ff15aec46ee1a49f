//! Versions of modules and their order, which is only a partial one.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of a module: MAJOR.MINOR.PATCH with an optional suffix, as Semantic Versioning 2 writes it.
///
/// The order is partial. Cores compare as numbers, and a release is above its pre-releases. Pre-releases of one core compare
/// only where their letters agree, digit runs as numbers: `rc2` is below `rc10`, but neither `alpha` nor `beta` is below the
/// other, since suffixes are names that people give (`experimental`, `rc`, a commit). Where the order is unknown,
/// [`PartialOrd::partial_cmp`] says so. Two versions are equal when their texts are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleVersion(semver::Version);

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no version: {reason}")]
pub struct VersionError {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ModuleVersion {
    /// Reads a version.
    ///
    /// # Errors
    ///
    /// When the text is no Semantic Version, or one of its numbers is beyond 64 bits.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        semver::Version::parse(text)
            .map(Self)
            .map_err(|error| VersionError {
                text: text.to_owned(),
                reason: error.to_string(),
            })
    }

    /// Returns MAJOR and MINOR.
    pub fn minor(&self) -> (u64, u64) {
        (self.0.major, self.0.minor)
    }

    /// Returns MAJOR, MINOR and PATCH.
    pub fn core(&self) -> (u64, u64, u64) {
        (self.0.major, self.0.minor, self.0.patch)
    }

    /// Returns the suffix of a pre-release, without its dash; empty for a release.
    pub fn suffix(&self) -> &str {
        self.0.pre.as_str()
    }

    /// Returns whether it is a release.
    pub fn is_release(&self) -> bool {
        self.0.pre.is_empty()
    }
}

// === impl ModuleVersion ===

impl PartialOrd for ModuleVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        let order = match self.core().cmp(&other.core()) {
            Ordering::Equal => match (self.is_release(), other.is_release()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_suffixes(self.suffix(), other.suffix())?,
            },
            order => order,
        };
        // Different texts of equal rank (`rc1` and `rc01`, or only the build differs) have no order.
        order.is_ne().then_some(order)
    }
}

/// Compares two suffixes run by run; none where their letters differ.
fn compare_suffixes(one: &str, two: &str) -> Option<Ordering> {
    let (mut one, mut two) = (Runs(one), Runs(two));
    let mut order = Ordering::Equal;
    loop {
        match (one.next(), two.next()) {
            (None, None) => return Some(order),
            (Some(Run::Number(a)), Some(Run::Number(b))) => {
                // Digit runs have any length: without leading zeros, the longer one is the larger number.
                order = order.then(a.len().cmp(&b.len())).then(a.cmp(b));
            }
            (Some(Run::Letters(a)), Some(Run::Letters(b))) if a == b => {}
            _ => return None,
        }
    }
}

/// A part of a suffix that is all digits (without leading zeros), or has none.
enum Run<'a> {
    Number(&'a str),
    Letters(&'a str),
}

/// The runs of a suffix, from left to right.
struct Runs<'a>(&'a str);

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let is_number = self.0.starts_with(|letter: char| letter.is_ascii_digit());
        let end = self
            .0
            .find(|letter: char| letter.is_ascii_digit() != is_number)
            .unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        if run.is_empty() {
            None
        } else if is_number {
            Some(Run::Number(run.trim_start_matches('0')))
        } else {
            Some(Run::Letters(run))
        }
    }
}

impl fmt::Display for ModuleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for ModuleVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ModuleVersion {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        Self::parse(&text)
    }
}

impl From<ModuleVersion> for String {
    fn from(version: ModuleVersion) -> Self {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn version(text: &str) -> ModuleVersion {
        ModuleVersion::parse(text).unwrap()
    }

    #[rstest]
    #[case("1.2.3", "1.2.10", Some(Ordering::Less))]
    #[case("1.10.0", "1.9.9", Some(Ordering::Greater))]
    #[case("1.0.0-rc2", "1.0.0-rc10", Some(Ordering::Less))]
    #[case("1.0.0-rc.2", "1.0.0-rc.10", Some(Ordering::Less))]
    #[case("1.0.0-experimental", "1.0.0", Some(Ordering::Less))]
    #[case("1.0.1-rc1", "1.0.0", Some(Ordering::Greater))]
    #[case("1.0.0-alpha", "1.0.0-beta", None)]
    #[case("1.0.0-rc", "1.0.0-rc1", None)]
    #[case("1.0.0-rc1", "1.0.0-rc01", None)]
    #[case("1.0.0+a", "1.0.0+b", None)]
    #[case(
        "1.0.0-rc99999999999999999999998",
        "1.0.0-rc99999999999999999999999",
        Some(Ordering::Less)
    )]
    fn order(#[case] one: &str, #[case] two: &str, #[case] expected: Option<Ordering>) {
        assert_eq!(version(one).partial_cmp(&version(two)), expected);
    }

    #[rstest]
    #[case("1")]
    #[case("1.2")]
    #[case("01.1.1")]
    #[case("0.0.1asdf")]
    #[case("v1.2.3")]
    #[case("")]
    fn no_versions(#[case] text: &str) {
        assert!(ModuleVersion::parse(text).is_err());
    }

    fn any_version() -> impl Strategy<Value = ModuleVersion> {
        "[0-2]\\.[0-2]\\.[0-2](-(rc|x)[0-9]{0,2}(-[a-b]0?[1-9])?)?".prop_map(|text| version(&text))
    }

    proptest! {
        #[test]
        fn the_order_is_a_partial_order(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.partial_cmp(&a), Some(Ordering::Equal));
            prop_assert_eq!(a.partial_cmp(&b), b.partial_cmp(&a).map(Ordering::reverse));
            prop_assert_eq!(a == b, a.partial_cmp(&b) == Some(Ordering::Equal));
            if a < b && b < c {
                prop_assert!(a < c);
            }
        }

        #[test]
        fn the_text_is_kept(a in any_version()) {
            prop_assert_eq!(version(&a.to_string()), a);
        }
    }
}
