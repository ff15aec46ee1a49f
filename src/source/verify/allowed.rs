//! The file of allowed SSH signers: ssh-keygen(1), "ALLOWED SIGNERS".

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ssh_key::PublicKey;

/// One key that may sign, by whom and when.
pub(super) struct AllowedSigner {
    pub(super) principals: String,
    pub(super) key: PublicKey,
    /// Seconds since 1970, both included.
    pub(super) valid_after: Option<i64>,
    pub(super) valid_before: Option<i64>,
}

/// Reads all lines. A key whose `namespaces` leave out `git` may sign nothing here, and neither may a `cert-authority`: certificates
/// of SSH keys are not supported.
pub(super) fn parse(text: &str) -> Result<Vec<AllowedSigner>, String> {
    let mut signers = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let signer = parse_line(line).map_err(|why| format!("line {}: {why}", index + 1))?;
        signers.extend(signer);
    }
    Ok(signers)
}

/// Reads one public key a line.
pub(super) fn parse_keys(text: &str) -> Result<Vec<PublicKey>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            line.parse()
                .map_err(|error| format!("line {}: {error}", index + 1))
        })
        .collect()
}

fn parse_line(line: &str) -> Result<Option<AllowedSigner>, String> {
    let (principals, rest) = word(line)?;
    let (second, after) = word(rest)?;
    let is_kind = ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|start| second.starts_with(start));
    let (options, key) = if is_kind { ("", rest) } else { (second, after) };
    let key = PublicKey::from_openssh(key).map_err(|error| error.to_string())?;
    let mut signer = AllowedSigner {
        principals: principals.trim_matches('"').to_owned(),
        key,
        valid_after: None,
        valid_before: None,
    };
    let mut usable = true;
    for option in split_options(options) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "cert-authority" => usable = false,
            "namespaces" => usable &= value.split(',').any(|name| name == "git" || name == "*"),
            "valid-after" => signer.valid_after = Some(time(value)?),
            "valid-before" => signer.valid_before = Some(time(value)?),
            "" => {}
            other => return Err(format!("the option `{other}` is not known")),
        }
    }
    Ok(usable.then_some(signer))
}

/// Takes the first word, in which quotes may hold spaces, and what follows it.
fn word(line: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    let end = line.find(|char: char| {
        quoted ^= char == '"';
        char.is_whitespace() && !quoted
    });
    match end {
        Some(end) => Ok((&line[..end], line[end..].trim_start())),
        None => Err("it has no key".to_owned()),
    }
}

fn split_options(options: &str) -> Vec<&str> {
    let mut quoted = false;
    options
        .split(|char: char| {
            quoted ^= char == '"';
            char == ',' && !quoted
        })
        .collect()
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`. Without `Z` it is the local time of the process, which is UTC here.
fn time(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is not a time, written YYYYMMDD[HHMM[SS]]Z");
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let full = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        14 => digits.to_owned(),
        _ => return Err(wrong()),
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%S", &full).map_err(|_| wrong())?;
    let zoned = civil.to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
    Ok(zoned.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    #[rstest]
    #[case("ada@example.com KEY", "ada@example.com", None, None)]
    #[case(
        "ada@example.com,bob KEY with a comment",
        "ada@example.com,bob",
        None,
        None
    )]
    #[case("\"ada b\" KEY", "ada b", None, None)]
    #[case("* namespaces=\"file,git\" KEY", "*", None, None)]
    #[case("a valid-after=\"19700102\" KEY", "a", Some(86_400), None)]
    #[case(
        "a valid-after=19700102,valid-before=\"197001030001Z\" KEY",
        "a",
        Some(86_400),
        Some(172_860)
    )]
    #[case("a\tvalid-before=\"19700101000001Z\"\tKEY", "a", None, Some(1))]
    fn a_line_is_understood(
        #[case] line: &str,
        #[case] principals: &str,
        #[case] after: Option<i64>,
        #[case] before: Option<i64>,
    ) {
        let signers = parse(&line.replace("KEY", KEY)).unwrap();
        let [signer] = &signers[..] else {
            panic!("one line is one signer")
        };
        assert_eq!(signer.principals, principals);
        assert_eq!((signer.valid_after, signer.valid_before), (after, before));
    }

    #[rstest]
    #[case("# only a comment\n\n")]
    #[case("a namespaces=\"file\" KEY")]
    #[case("a cert-authority KEY")]
    fn some_lines_allow_nothing(#[case] text: &str) {
        assert!(parse(&text.replace("KEY", KEY)).unwrap().is_empty());
    }

    #[rstest]
    #[case("ada", "line 1: it has no key")]
    #[case("\na KEY\nb ssh-ed25519 nonsense", "line 3: ")]
    #[case("a touch-required KEY", "the option `touch-required` is not known")]
    #[case("a valid-before=tomorrow KEY", "`tomorrow` is not a time")]
    #[case("a valid-before=20261301 KEY", "`20261301` is not a time")]
    fn what_cannot_be_read_is_named(#[case] text: &str, #[case] reason: &str) {
        let why = parse(&text.replace("KEY", KEY)).err().unwrap();
        assert!(why.contains(reason), "{why}");
    }
}
