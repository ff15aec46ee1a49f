//! The page of everything that stands in git: every field of our definitions, from the schemas that editors use.

use std::fmt::Write as _;

use serde_json::Value;

use super::NOTICE;

/// Returns the page, in Markdown.
pub(in crate::cli) fn definitions() -> String {
    let mut page = format!(
        "# Definitions\n\n{NOTICE}\n\
         Every field of what stands in git. A field with `*` must be there. `[]` is each entry of a list, `NAME` a name that you choose.\n\
         The same as JSON Schema, for editors: [schemas/](schemas/).\n"
    );
    for (name, schema) in crate::desired::json_schemas() {
        let title = schema["title"].as_str().unwrap_or(name);
        let _ = write!(
            page,
            "\n## {title}\n\n[schemas/{name}.json](schemas/{name}.json)\n\n| field | is | |\n| --- | --- | --- |\n"
        );
        let mut table = Table {
            page: &mut page,
            described: Vec::new(),
        };
        table.fields("", &schema);
    }
    page
}

struct Table<'a> {
    page: &'a mut String,
    /// What has rows already, with the path: the same below another path only points there.
    described: Vec<(String, Value)>,
}

impl Table<'_> {
    fn fields(&mut self, path: &str, schema: &Value) {
        let Some(fields) = schema["properties"].as_object() else {
            return;
        };
        let required = |name: &str| {
            let required = schema["required"].as_array();
            required.is_some_and(|names| names.iter().any(|it| it == name))
        };
        for (name, field) in fields {
            let star = if required(name) { "*" } else { "" };
            self.field(&format!("{path}{name}"), star, field);
        }
    }

    fn field(&mut self, path: &str, star: &str, field: &Value) {
        let (steps, inner) = inside(field);
        let path_inside = format!("{path}{steps}");
        let known = self.described.iter().find(|(_, known)| known == inner);
        let known = known.map(|(path, _)| path.clone());
        let mut about = field["description"]
            .as_str()
            .unwrap_or_default()
            .replace('|', "\\|");
        if let Some(known) = &known {
            let _ = write!(about, "; fields as of `{known}`");
        }
        let _ = writeln!(self.page, "| `{path}`{star} | {} | {about} |", kind(field));
        let has_fields = inner["properties"]
            .as_object()
            .is_some_and(|it| !it.is_empty());
        if known.is_none() && has_fields {
            self.described.push((path_inside.clone(), inner.clone()));
            self.fields(&format!("{path_inside}."), inner);
        }
    }
}

/// Returns what a field holds in the end, and the way there through lists and names.
fn inside(mut field: &Value) -> (String, &Value) {
    let mut steps = String::new();
    loop {
        if field["items"].is_object() {
            steps.push_str("[]");
            field = &field["items"];
        } else if field["additionalProperties"].is_object() {
            steps.push_str(".NAME");
            field = &field["additionalProperties"];
        } else {
            return (steps, field);
        }
    }
}

/// Says what a field is.
fn kind(field: &Value) -> String {
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect();
        return values.join(", ");
    }
    if field["items"].is_object() {
        return format!("list: {}", kind(&field["items"]));
    }
    if field["additionalProperties"].is_object() {
        return format!("by name: {}", kind(&field["additionalProperties"]));
    }
    let word = match field["type"].as_str() {
        Some("string") => "text",
        Some("boolean") => "true or false",
        Some("integer" | "number") => "number",
        Some("object") => "fields",
        _ => "anything",
    };
    word.to_owned()
}
