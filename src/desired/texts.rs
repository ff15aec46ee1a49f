//! The texts that Kyma's and our kinds restrict: each rule as a pattern for the published schema and as a function.
//!
//! Patterns and lengths of Kyma's kinds are those of its CustomResourceDefinitions (v1beta2).

use super::kinds::is_label;
use super::schema::TextRule;
use crate::model::{ChannelName, ModuleName, ModuleVersion};

/// `spec.moduleName`: may be empty in Kyma's schema; the rules on identity refuse that.
pub(super) static MODULE_NAME: TextRule = TextRule {
    what: "a module name",
    pattern: "^([a-z]{3,}(-[a-z]{3,})*)?$",
    accepts: |text| text.is_empty() || ModuleName::new(text).is_ok(),
    length: (0, 64),
    help: "parts of three or more lower-case letters, joined by `-`: `btp-operator`",
};

/// `spec.ocmComponentName`.
pub(super) static OCM_COMPONENT_NAME: TextRule = TextRule {
    what: "the name of an OCM component",
    pattern: "^[a-z][-a-z0-9]*([.][a-z][-a-z0-9]*)*[.][a-z]{2,}(/[a-z][-a-z0-9_]*([.][a-z][-a-z0-9_]*)*)+$",
    accepts: is_ocm_component_name,
    length: (1, 255),
    help: "a domain and a path: `kyma-project.io/module/telemetry`",
};

/// `spec.channels[].channel`.
pub(super) static CHANNEL_NAME: TextRule = TextRule {
    what: "a channel name",
    pattern: "^[a-z]+$",
    accepts: |text| text.bytes().all(|byte| byte.is_ascii_lowercase()),
    length: (3, 32),
    help: "three to 32 lower-case letters: `regular`",
};

/// `spec.channel` of a ModuleTemplate, deprecated.
pub(super) static TEMPLATE_CHANNEL: TextRule = TextRule {
    what: "a channel name",
    pattern: "^$|^[a-z]{3,}$",
    accepts: |text| text.is_empty() || ChannelName::new(text).is_ok(),
    length: (0, 32),
    help: "three to 32 lower-case letters, or empty",
};

/// `spec.channels[].version`, and `spec.version` of a ModuleTemplate; may be empty in Kyma's schema.
pub(super) static VERSION: TextRule = TextRule {
    what: "a version that Kyma takes in a channel",
    pattern: r"^((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[a-zA-Z-][0-9a-zA-Z-]*)?)?$",
    accepts: |text| text.is_empty() || is_channel_version(text),
    length: (0, 32),
    help: "MAJOR.MINOR.PATCH with an optional suffix of letters, digits and `-` that starts with a letter: `1.42.0-rc1`",
};

/// `spec.mandatory.version`, and versions in our own kinds.
pub(super) static SEMANTIC_VERSION: TextRule = TextRule {
    what: "a semantic version",
    pattern: r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$",
    accepts: |text| ModuleVersion::parse(text).is_ok(),
    length: (1, 256),
    help: "MAJOR.MINOR.PATCH: `1.42.0`",
};

/// A URI as the API server's format `uri` takes it.
pub(super) static URI: TextRule = TextRule {
    what: "a URI",
    pattern: "^([A-Za-z][-+.A-Za-z0-9]*:|/)[^\\s]*$",
    accepts: is_uri,
    length: (1, usize::MAX),
    help: "for instance `https://example.com/telemetry/manifest.yaml`",
};

/// A calendar date.
pub(super) static DATE: TextRule = TextRule {
    what: "a date",
    pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    accepts: |text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
    length: (10, 10),
    help: "year, month and day: `2027-03-31`",
};

/// The suffix of a pre-release, as a channel allows it.
pub(super) static SUFFIX: TextRule = TextRule {
    what: "a suffix",
    pattern: "^[a-zA-Z][0-9a-zA-Z-]*$",
    accepts: |text| {
        text.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    },
    length: (1, 32),
    help: "what stands behind the dash, without its number: `rc` allows `1.42.0-rc1`",
};

/// The name of a landscape: a folder below `landscapes/`.
pub(super) static LANDSCAPE: TextRule = TextRule {
    what: "a landscape's name",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    accepts: is_label,
    length: (1, 63),
    help: "lower-case letters, digits and `-`: `stage`",
};

/// A component as another one names it.
pub(super) static COMPONENT: TextRule = TextRule {
    what: "a component",
    pattern: "^((modules|components)/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    accepts: |text| component_name(text).is_some(),
    length: (1, 80),
    help: "`modules/NAME`, `components/NAME`, or just the NAME of a folder below `components/`",
};

/// A length of time.
pub(super) static DURATION: TextRule = TextRule {
    what: "a length of time",
    pattern: "^([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?$",
    accepts: |text| parse_duration(text).is_some(),
    length: (2, 32),
    help: "hours, minutes and seconds: `10m`, `1h30m`",
};

/// A host that migrations may call.
pub(super) static HOST: TextRule = TextRule {
    what: "a host",
    pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$",
    accepts: |text| {
        let (host, port) = text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port)));
        super::kinds::is_subdomain(host) && port.is_none_or(|port| port.parse::<u16>().is_ok())
    },
    length: (1, 253),
    help: "a name without a scheme, and a port where it is not the usual one: `vault.example.com:8200`",
};

/// Returns whether a folder of a module can be that of a version.
pub(super) fn is_version_folder(name: &str) -> bool {
    SEMANTIC_VERSION.holds(name)
}

/// Reads the name of a component; a name without a folder is one of `components/`.
pub(super) fn component_name(text: &str) -> Option<crate::model::ComponentName> {
    if text.contains('/') {
        text.parse().ok()
    } else {
        crate::model::ComponentName::folder(text).ok()
    }
}

/// Reads a length of time like `1h30m`: each unit at most once, the larger one first, more than nothing.
pub(super) fn parse_duration(text: &str) -> Option<std::time::Duration> {
    let mut rest = text;
    let mut seconds = 0;
    for (unit, length, digits_max) in [('h', 3600, 4), ('m', 60, 4), ('s', 1, 5)] {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(after) = rest[digits..].strip_prefix(unit) {
            if digits > digits_max {
                return None;
            }
            seconds += rest[..digits].parse::<u64>().ok()? * length;
            rest = after;
        }
    }
    (rest.is_empty() && seconds > 0).then(|| std::time::Duration::from_secs(seconds))
}

fn is_channel_version(text: &str) -> bool {
    let (core, suffix) = match text.split_once('-') {
        Some((core, suffix)) => (core, Some(suffix)),
        None => (text, None),
    };
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_suffix = |suffix: &str| {
        suffix
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'-')
            && suffix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3 && core.split('.').all(is_number) && suffix.is_none_or(is_suffix)
}

fn is_ocm_component_name(text: &str) -> bool {
    fn is_part(part: &str, underscore: bool) -> bool {
        part.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase())
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || byte == b'-'
                    || (underscore && byte == b'_')
            })
    }
    let Some((domain, path)) = text.split_once('/') else {
        return false;
    };
    let Some((names, top)) = domain.rsplit_once('.') else {
        return false;
    };
    top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_lowercase())
        && names.split('.').all(|part| is_part(part, false))
        && path
            .split('/')
            .all(|segment| segment.split('.').all(|part| is_part(part, true)))
}

fn is_uri(text: &str) -> bool {
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    });
    (has_scheme || text.starts_with('/'))
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&VERSION, "", true)]
    #[case(&VERSION, "1", false)]
    #[case(&VERSION, "1.2", false)]
    #[case(&VERSION, "1.2.3", true)]
    #[case(&VERSION, "1.2.3-foo", true)]
    #[case(&VERSION, "1.2.3-----foo--bar", true)]
    #[case(&VERSION, "01.1.1", false)]
    #[case(&VERSION, "0.0.1asdf", false)]
    #[case(&VERSION, "1.0.0-rc.1", false)]
    #[case(&VERSION, "1.0.0-1", false)]
    #[case(&VERSION, "1.0.0+build", false)]
    #[case(&VERSION, "1.0.0-abcdefghijklmnopqrstuvwxyzab", false)]
    #[case(&SEMANTIC_VERSION, "1.0.0-rc.1+build", true)]
    #[case(&SEMANTIC_VERSION, "1.0", false)]
    #[case(&MODULE_NAME, "", true)]
    #[case(&MODULE_NAME, "btp-operator", true)]
    #[case(&MODULE_NAME, "api-v", false)]
    #[case(&MODULE_NAME, "k8s", false)]
    #[case(&CHANNEL_NAME, "fast", true)]
    #[case(&CHANNEL_NAME, "ab", false)]
    #[case(&CHANNEL_NAME, "fast1", false)]
    #[case(&OCM_COMPONENT_NAME, "kyma-project.io/module/telemetry", true)]
    #[case(&OCM_COMPONENT_NAME, "kyma-project.io/a_b/c.d", true)]
    #[case(&OCM_COMPONENT_NAME, "kyma-project.io", false)]
    #[case(&OCM_COMPONENT_NAME, "localhost/module", false)]
    #[case(&OCM_COMPONENT_NAME, "kyma-project.i/module", false)]
    #[case(&OCM_COMPONENT_NAME, "kyma-project.io//module", false)]
    #[case(&URI, "https://example.com/a", true)]
    #[case(&URI, "example.com/a", false)]
    #[case(&DATE, "2027-02-28", true)]
    #[case(&DATE, "2027-02-30", false)]
    #[case(&COMPONENT, "ingress", true)]
    #[case(&COMPONENT, "modules/keda", true)]
    #[case(&COMPONENT, "other/keda", false)]
    #[case(&DURATION, "1h30m", true)]
    #[case(&DURATION, "30m1h", false)]
    #[case(&DURATION, "0s", false)]
    #[case(&DURATION, "10", false)]
    #[case(&SUFFIX, "rc", true)]
    #[case(&SUFFIX, "1", false)]
    fn rules(#[case] rule: &TextRule, #[case] text: &str, #[case] good: bool) {
        assert_eq!(rule.holds(text), good, "{} `{text}`", rule.what);
    }
}
