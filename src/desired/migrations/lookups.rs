//! Rules for lookups, and for namespaces of whatever a definition names.

use serde_json::Value;

use super::steps::group_of;
use crate::desired::finding::{Finding, Pointer};
use crate::desired::kinds::{Scope, meant_kind, scope_of};
use crate::model::limits::{LOOKUP_OBJECTS_DEFAULT, LOOKUP_OBJECTS_MAX};
use crate::model::migration::Lookup;
use crate::model::{Code, GroupKind, Selector};

/// Checks the label selector of what stands at a pointer. One with an expression is known when the step runs, and is read then.
pub(super) fn check_selector(code: Code, selector: &str, at: &Pointer) -> Option<Finding> {
    if selector.contains("${") {
        return None;
    }
    let wrong = Selector::parse(selector).err()?;
    let mut at = at.clone();
    at.push("selector".into());
    let finding = Finding::error(code, at, wrong);
    Some(finding.help("as kubectl writes it: app=web,tier!=db,env in (a,b)"))
}

/// Checks one lookup, which stands at a pointer.
pub(super) fn check_lookup(lookup: &Lookup, at: &Pointer) -> Vec<Finding> {
    let mut found = Vec::new();
    let error = |message: String| Finding::error(Code::MigrationLookup, at.clone(), message);
    let name = match at.last() {
        Some(crate::desired::yaml::PointerPart::Key(name)) => name.as_str(),
        _ => "",
    };
    match (&lookup.name, lookup.list) {
        (Some(_), true) => found.push(
            error(format!(
                "lookup `{name}` has a name, and asks for a list as well"
            ))
            .at_key()
            .help("for one object remove `list`; for a list remove `name`"),
        ),
        (None, false) if lookup.selector.is_some() || lookup.limit.is_some() => found.push(
            error(format!(
                "lookup `{name}` does not say that it is a list, and `selector` and `limit` are for lists"
            ))
            .at_key()
            .help("list: true"),
        ),
        (None, false) => found.push(
            error(format!(
                "lookup `{name}` says neither which object nor that it is a list"
            ))
            .at_key()
            .help("name: NAME   # of the one object; for several of them: list: true"),
        ),
        _ => {}
    }
    if !lookup.list
        && lookup.name.is_some()
        && (lookup.selector.is_some() || lookup.limit.is_some())
    {
        found.push(
            error(format!(
                "lookup `{name}` has a name, and `selector` and `limit` are for lists"
            ))
            .at_key()
            .help("remove them; or for a list write `list: true` in place of `name`"),
        );
    }
    if lookup
        .limit
        .is_some_and(|limit| !(1..=LOOKUP_OBJECTS_MAX).contains(&limit))
    {
        let mut at = at.clone();
        at.push("limit".into());
        let message = format!("a list may have 1 to {LOOKUP_OBJECTS_MAX} objects");
        found.push(Finding::error(Code::MigrationLookup, at, message).help(format!(
            "narrow it with `namespace` or `selector`; without `limit` it is {LOOKUP_OBJECTS_DEFAULT}"
        )));
    }
    if let Some(selector) = &lookup.selector {
        found.extend(check_selector(Code::MigrationLookup, selector, at));
    }
    let texts = [&lookup.name, &lookup.namespace, &lookup.selector];
    if texts.into_iter().flatten().any(|text| text.contains("${")) {
        found.push(
            error(format!(
                "lookup `{name}` holds an expression, and what is looked up must be known from git alone"
            ))
            .at_key()
            .help("look up a list, and choose in the expression"),
        );
    }
    let namespace = lookup.namespace.as_deref();
    let (api_version, kind) = (&lookup.api_version, &lookup.kind);
    let code = Code::MigrationLookup;
    found.extend(if lookup.list && namespace.is_none() {
        check_kind(code, api_version, kind, at)
    } else {
        check_scope(code, api_version, kind, namespace, at)
    });
    found
}

/// Checks that a kind is not a slip of the pen: at run time a kind that the cluster does not have is one without objects.
fn check_kind(code: Code, api_version: &str, kind: &str, at: &Pointer) -> Option<Finding> {
    let meant = meant_kind(group_of(api_version), kind)?;
    let mut at = at.clone();
    at.push("kind".into());
    let message = format!("{api_version} has no kind `{kind}`");
    Some(Finding::error(code, at, message).help(format!("did you mean `{meant}`?")))
}

/// Checks that objects of a kind have a namespace or not, where the scope of the kind is known without a cluster.
pub(super) fn check_scope(
    code: Code,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    at: &Pointer,
) -> Option<Finding> {
    let Some(scope) = scope_of(group_of(api_version), kind) else {
        return check_kind(code, api_version, kind, at);
    };
    let full = GroupKind::new(group_of(api_version), kind);
    match (scope, namespace) {
        (Scope::Namespaced, None) => Some(
            Finding::error(code, at.clone(), format!("a {full} lives in a namespace"))
                .at_key()
                .help("namespace: NAMESPACE"),
        ),
        (Scope::Cluster, Some(_)) => Some(
            Finding::error(code, at.clone(), format!("a {full} has no namespace"))
                .at_key()
                .help("remove `namespace`"),
        ),
        _ => None,
    }
}

/// Returns whether a lookup says which form it has. One that does not is told of once, and not again wherever it is used.
pub(super) fn is_clear(lookup: &Lookup) -> bool {
    let is_for_lists = lookup.selector.is_some() || lookup.limit.is_some();
    lookup.name.is_some() != lookup.list && (lookup.list || !is_for_lists)
}

/// Returns whether a value has the form of what a lookup finds.
pub(super) fn has_form_of(lookup: &Lookup, value: &Value) -> bool {
    if !is_clear(lookup) {
        true
    } else if lookup.list {
        value
            .as_array()
            .is_some_and(|objects| objects.iter().all(Value::is_object))
    } else {
        value.is_object() || value.is_null()
    }
}
