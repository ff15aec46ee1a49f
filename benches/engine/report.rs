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
    #[serde(skip_serializing_if = "str::is_empty")]
    flux: &'static str,
}

impl Report {
    /// Adds a row, where `flux` is what Flux takes or empty, and shows it at once: the whole takes minutes.
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
        let flux = match row.flux {
            "" => String::new(),
            flux => format!(" {flux} |"),
        };
        println!("| {} | {} | {} |{flux}", row.what, row.aim, row.measured);
        self.rows.push(row);
    }

    /// Writes the JSON form.
    pub(crate) fn write(&self, file: &str) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(file);
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

/// Returns a count as a number with a fraction.
pub(crate) fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// Returns how many of a count each of so many has.
pub(crate) fn per(count: u64, among: u64) -> String {
    match count % among {
        0 => (count / among).to_string(),
        _ => format!("{:.1}", number(count) / number(among)),
    }
}
