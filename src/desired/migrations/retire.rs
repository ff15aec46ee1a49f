//! Takes out of a definition what a migration that never runs again does not need. What stays is its guard, which blocks
//! where a cluster has skipped the releases that would have run it.

use serde_json::Value;

use crate::desired::yaml::{Part, PointerPart, locate, parse};

/// Why a definition cannot be retired as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetireError {
    /// The file is not one Migration.
    #[error("the file does not hold exactly one Migration")]
    NotOne,
    /// There is nothing to take out.
    #[error("it is retired already")]
    Already,
    /// The lines of a field are not its own.
    #[error("the lines of `{field}` cannot be told from others")]
    Interwoven {
        /// The field, as `spec.steps`.
        field: String,
    },
}

/// What goes.
const FIELDS: &[&[&str]] = &[
    &["spec", "after"],
    &["spec", "guard", "requires"],
    &["spec", "guard", "doneWhen"],
    &["spec", "steps"],
    &["spec", "undo"],
    &["spec", "policy"],
    &["spec", "tests"],
];

/// Returns the text of a file with one Migration without its steps and what belongs to them. Every other line stays as it is,
/// comments too; a comment right above a field goes with it. With `remove_in` it also goes in that version from now on.
///
/// # Errors
///
/// When the file is not one Migration in block style, or is retired already.
pub fn retire(text: &str, remove_in: Option<&str>) -> Result<String, RetireError> {
    let moved;
    let text = match remove_in {
        Some(version) => {
            moved = move_end(text, version)?;
            moved.as_str()
        }
        None => text,
    };
    let before = only_migration(text).ok_or(RetireError::NotOne)?;
    if before.pointer("/spec/steps").is_none_or(Value::is_null) {
        return Err(RetireError::Already);
    }
    let mut expected = before.clone();
    let mut lines: Vec<Option<&str>> = text.split_inclusive('\n').map(Some).collect();
    for path in FIELDS {
        let (name, parents) = path.split_last().expect("a path has a name");
        let pointer = format!("/{}", parents.join("/"));
        let Some(Value::Object(parent)) = expected.pointer_mut(&pointer) else {
            continue;
        };
        if parent.remove(*name).is_none() {
            continue;
        }
        let interwoven = || RetireError::Interwoven {
            field: path.join("."),
        };
        let pointer: Vec<PointerPart> = path.iter().map(|part| (*part).into()).collect();
        let (line, column) =
            locate(text.as_bytes(), 0, &pointer, Part::Key).ok_or_else(interwoven)?;
        take_out(&mut lines, line as usize - 1, column as usize - 1).ok_or_else(interwoven)?;
    }
    let after: String = lines.into_iter().flatten().collect();
    // Lines are a matter of layout; that they meant what was to go is proved by reading the result.
    if only_migration(&after).as_ref() == Some(&expected) {
        Ok(after)
    } else {
        Err(RetireError::Interwoven {
            field: "spec".to_owned(),
        })
    }
}

/// Writes another version where `removeIn` has one.
fn move_end(text: &str, version: &str) -> Result<String, RetireError> {
    let mut expected = only_migration(text).ok_or(RetireError::NotOne)?;
    let interwoven = || RetireError::Interwoven {
        field: "spec.lifecycle.removeIn".to_owned(),
    };
    let end = expected
        .pointer_mut("/spec/lifecycle/removeIn")
        .ok_or_else(interwoven)?;
    let old = end.as_str().ok_or_else(interwoven)?.to_owned();
    *end = version.into();
    let pointer = ["spec", "lifecycle", "removeIn"].map(PointerPart::from);
    let (line, column) =
        locate(text.as_bytes(), 0, &pointer, Part::Value).ok_or_else(interwoven)?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let line = lines.get_mut(line as usize - 1).ok_or_else(interwoven)?;
    let start = line
        .char_indices()
        .nth(column as usize - 1)
        .map_or(line.len(), |(at, _)| at);
    let at = start + line[start..].find(&old).ok_or_else(interwoven)?;
    line.replace_range(at..at + old.len(), version);
    let after = lines.concat();
    (only_migration(&after).as_ref() == Some(&expected))
        .then_some(after)
        .ok_or_else(interwoven)
}

fn only_migration(text: &str) -> Option<Value> {
    let parsed = parse(text.as_bytes());
    let mut documents = parsed.documents.into_iter();
    let only = documents.next().filter(|_| parsed.problems.is_empty())?;
    let is_migration = only.value.get("kind").and_then(Value::as_str) == Some("Migration");
    (documents.next().is_none() && is_migration).then_some(only.value)
}

/// Takes out the lines of a field whose key stands at a line and indentation. None when the key does not begin its line.
fn take_out(lines: &mut [Option<&str>], key: usize, indent: usize) -> Option<()> {
    let text = lines.get(key).copied().flatten()?;
    if indent_of(text) != indent {
        return None;
    }
    let mut end = key + 1;
    let mut last = key;
    while let Some(line) = lines.get(end).copied() {
        let line = line.unwrap_or("\n");
        let is_item = indent_of(line) == indent && line.trim_start().starts_with('-');
        if !line.trim().is_empty() {
            if indent_of(line) <= indent && !is_item {
                break;
            }
            last = end;
        }
        end += 1;
    }
    let mut start = key;
    while start > 0
        && lines[start - 1]
            .is_some_and(|line| indent_of(line) == indent && line.trim_start().starts_with('#'))
    {
        start -= 1;
    }
    lines[start..=last].fill(None);
    Some(())
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATION: &str = "\
# Why this exists.
apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata: {name: grow}
spec:
  owner: team
  bind: {phase: pre}
  # When it goes.
  lifecycle: {introducedIn: 1.0.0, removeIn: 2.0.0}
  lookups: # stays
    claim: {apiVersion: v1, kind: ConfigMap, namespace: a, name: b}
  guard:
    needed: objects.claim != null  # the proof
    requires:
    - cel: \"true\"
      message: never

  # What it does.
  steps:
  - id: one
    patch:
      ref: claim
      body: {data: {text: |-
        # no comment
        }}
  policy:
    timeout: 1m
# The end.
";

    #[test]
    fn what_only_steps_need_goes_and_comments_stay() {
        let migration = MIGRATION.replace(
            "{data: {text: |-\n        # no comment\n        }}",
            "\n        data:\n          text: |-\n            # no comment",
        );
        let retired = retire(&migration, None).unwrap();
        assert_eq!(
            retired,
            "\
# Why this exists.
apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata: {name: grow}
spec:
  owner: team
  bind: {phase: pre}
  # When it goes.
  lifecycle: {introducedIn: 1.0.0, removeIn: 2.0.0}
  lookups: # stays
    claim: {apiVersion: v1, kind: ConfigMap, namespace: a, name: b}
  guard:
    needed: objects.claim != null  # the proof

# The end.
"
        );
        assert_eq!(retire(&retired, None), Err(RetireError::Already));
    }

    #[test]
    fn one_that_goes_early_says_when() {
        let body = "{data: {text: |-\n        # no comment\n        }}";
        let migration = MIGRATION.replace(body, "{}");
        let retired = retire(&migration, Some("1.7.0")).unwrap();
        assert!(
            retired.contains("  lifecycle: {introducedIn: 1.0.0, removeIn: 1.7.0}\n"),
            "{retired}"
        );
        assert!(!retired.contains("steps:"), "{retired}");
        let never = migration.replace("introducedIn: 1.0.0, removeIn: 2.0.0", "never: it stays");
        let field = "spec.lifecycle.removeIn".to_owned();
        let refused = RetireError::Interwoven { field };
        assert_eq!(retire(&never, Some("1.7.0")), Err(refused));
    }

    #[test]
    fn what_is_written_in_one_line_is_left_alone() {
        let text = "apiVersion: fairway.dev/v1alpha1\nkind: Migration\nspec: {owner: a, steps: [{id: a}]}\n";
        let field = "spec.steps".to_owned();
        assert_eq!(retire(text, None), Err(RetireError::Interwoven { field }));
    }

    #[test]
    fn a_file_with_two_documents_is_refused() {
        let text = "kind: Migration\nspec: {steps: []}\n---\nkind: Migration\n";
        assert_eq!(retire(text, None), Err(RetireError::NotOne));
    }
}
