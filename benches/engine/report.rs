//! The table, and its JSON form.

use serde::Serialize;

/// What was measured, in the order of the table.
#[derive(Default, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    what: String,
    aim: &'static str,
    measured: String,
    flux: &'static str,
}

impl Report {
    /// Adds a row, and shows it at once: the whole takes minutes.
    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        aim: &'static str,
        measured: impl Into<String>,
        flux: &'static str,
    ) {
        let row = Row {
            what: what.into(),
            aim,
            measured: measured.into(),
            flux,
        };
        println!(
            "| {} | {} | {} | {} |",
            row.what, row.aim, row.measured, row.flux
        );
        self.rows.push(row);
    }

    /// Writes the JSON form.
    pub(crate) fn write(&self) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("engine.json");
        std::fs::write(&path, serde_json::to_string_pretty(self).unwrap()).unwrap();
        eprintln!("wrote {}", path.display());
    }
}

/// Returns the median, and the lowest and highest.
pub(crate) fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}
