//! Guards alone, without a cluster.

use std::time::Instant;

use fairway::expression::{Bindings, Expression};
use serde_json::{Value, json};

use crate::report::{Report, spread};

/// The guard of the first migration of the reference: two lookups, a loop, four quantities.
const GUARD: &str = "(objects.claim != null
  && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size))
|| (objects.set != null
  && objects.set.spec.volumeClaimTemplates.exists(t,
       quantity(t.spec.resources.requests.storage) < quantity(params.size)))";

fn bindings() -> Bindings {
    let storage = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let mut bindings = Bindings::default();
    bindings.set(
        "objects",
        json!({
            "claim": storage("30Gi"),
            "set": {"spec": {"volumeClaimTemplates": [storage("30Gi"), storage("30Gi")]}},
        }),
    );
    bindings.set("params", json!({"size": "30Gi"}));
    bindings
}

/// Compiles and evaluates one guard that finds nothing to do, which is the longest way through it.
pub(crate) fn one_guard(report: &mut Report) {
    let bindings = bindings();
    let mut took = Vec::new();
    for _ in 0..2_000 {
        let begun = Instant::now();
        let holds = Expression::compile(GUARD).unwrap().holds(&bindings);
        took.push(begun.elapsed().as_secs_f64() * 1e6);
        assert_eq!(holds, Ok(false));
    }
    let (median, _, highest) = spread(took);
    report.row(
        "one guard: compile and evaluate",
        "≤ 500 µs",
        format!("{median:.1} µs (highest {highest:.0} µs)"),
        "",
    );
}

/// Uses up the whole budget in several ways, over as much as an expression may look at.
pub(crate) fn worst_evaluation(report: &mut Report) {
    let mut bindings = Bindings::default();
    bindings.set("n", json!((0..20_000).collect::<Vec<u32>>()));
    bindings.set("text", json!("a".repeat(1024 * 1024)));
    let objects: Vec<Value> = (0..500)
        .map(|number| json!({"name": format!("object-{number}"), "x": vec![number; 50]}))
        .collect();
    bindings.set("all", json!(objects));
    let mut worst = (0.0, "");
    for text in [
        "n.all(a, n.all(b, true))",
        "n.map(a, n.map(b, a * b))",
        "n.map(a, text + text)",
        "n.distinct()",
        "n.map(a, n.sort())",
        "n.exists(a, text.matches('(a|b)*c' + string(a)))",
        "n.exists(a, 'X'.matches('[a-z]{1,50}' + string(a)))",
        "n.exists(a, 'X'.matches('\\\\w{20}' + string(a)))",
        "n.map(a, text.findAll('(?:a?){50}a{50}'))",
        "n.map(a, text.split(''))",
        "all.all(a, all.all(b, all == all))",
        "n.all(a, quantity('1.5Gi') < quantity(a))",
        "n.all(a, text.indexOf('b', 1000000) == -1)",
    ] {
        let expression = Expression::compile(text).unwrap();
        let begun = Instant::now();
        let _ = expression.evaluate(&bindings);
        let took = begun.elapsed().as_secs_f64();
        eprintln!("{:>8.1} ms  {text}", took * 1e3);
        if took > worst.0 {
            worst = (took, text);
        }
    }
    report.row(
        "the longest evaluation that could be found",
        "≤ 1 s",
        format!("{:.0} ms (`{}`)", worst.0 * 1e3, worst.1),
        "",
    );
}
