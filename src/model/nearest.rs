//! What was probably meant by a name that does not exist.

/// Returns the candidate that was probably meant: at most a third of its letters away.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Names longer than this are not slips of the pen, and comparing them would cost the product of their lengths.
    const NAME_MAX: usize = 100;
    /// Candidates beyond these are not compared, so that a finding costs the same in any repository.
    const CANDIDATES_MAX: usize = 200;
    if name.len() > NAME_MAX {
        return None;
    }
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len() <= NAME_MAX)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns how many letters must be added, removed or exchanged to get from one name to the other (Levenshtein), without
/// regard to case.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let exchanged = diagonal + usize::from(!letter.eq_ignore_ascii_case(other));
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::nearest;

    #[rstest]
    #[case("chanels", Some("channels"))]
    #[case("Channels", Some("channels"))]
    #[case("versoin", Some("version"))]
    #[case("moduleName", None)]
    #[case("", None)]
    fn nearest_names(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(
            nearest(name, ["channels", "version", "mandatory"]),
            expected
        );
    }
}
