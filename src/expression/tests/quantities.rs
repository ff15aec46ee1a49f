use std::cmp::Ordering;

use proptest::prelude::*;
use rstest::rstest;

use crate::expression::quantity::Quantity;

/// After the cases of Kubernetes' `quantity_test.go`.
#[rstest]
#[case("30Mi", "30Gi", Ordering::Less)]
#[case("50Gi", "30Gi", Ordering::Greater)]
#[case("1Gi", "1073741824", Ordering::Equal)]
#[case("1G", "1000M", Ordering::Equal)]
#[case("500m", "0.5", Ordering::Equal)]
#[case("1e3", "1k", Ordering::Equal)]
#[case("1E3", "1k", Ordering::Equal)]
#[case("1E", "1e18", Ordering::Equal)]
#[case("1Ei", "1152921504606846976", Ordering::Equal)]
#[case("1.5Gi", "1536Mi", Ordering::Equal)]
#[case("-1", "1n", Ordering::Less)]
#[case("-0", "0", Ordering::Equal)]
#[case("+1", "1.0", Ordering::Equal)]
#[case(".5", "500m", Ordering::Equal)]
#[case("1.", "1", Ordering::Equal)]
// Finer than a nano is rounded away from zero.
#[case("0.1n", "1n", Ordering::Equal)]
#[case("1e-30000", "1n", Ordering::Equal)]
// Larger than the largest stays there.
#[case("100Ei", "9223372036854775807", Ordering::Equal)]
#[case("1e30000", "9223372036854775807", Ordering::Equal)]
#[case("1e30000", "1", Ordering::Greater)]
#[case("0e99999999999", "0", Ordering::Equal)]
#[case(
    "999999999999999999999999999999999999999999",
    "9223372036854775807",
    Ordering::Equal
)]
#[case("0.000000001Ei", "1152921504.606846976", Ordering::Equal)]
fn quantities_have_kubernetes_order(
    #[case] left: &str,
    #[case] right: &str,
    #[case] order: Ordering,
) {
    let parse = |text| Quantity::parse(text).unwrap();
    assert_eq!(parse(left).cmp(&parse(right)), order);
}

#[rstest]
fn what_is_no_quantity_is_refused(
    #[values(
        "", "Gi", "1gi", "1 Gi", " 1", "1.2.3", "--1", "1e", "1eX", "0x1", "1Gi2", ".", "1e+",
        "é1", "1é"
    )]
    text: &str,
) {
    assert_eq!(Quantity::parse(text), None, "{text}");
}

#[rstest]
#[case("1.5Gi", "1610612736")]
#[case("-500m", "-0.5")]
#[case("1n", "0.000000001")]
fn a_quantity_is_written_as_a_plain_number(#[case] text: &str, #[case] written: &str) {
    assert_eq!(Quantity::parse(text).unwrap().to_string(), written);
}

proptest! {
    #[test]
    fn a_written_quantity_is_the_same(text in r"[+-]?[0-9]{1,25}(\.[0-9]{0,15})?(n|u|m|k|M|G|Ki|Mi|Gi|Ti|e-?[0-9]{1,3})?") {
        let quantity = Quantity::parse(&text).unwrap();
        prop_assert_eq!(Quantity::parse(&quantity.to_string()), Some(quantity));
    }

    #[test]
    fn no_text_takes_the_parser_down(text in ".{0,60}") {
        let _ = Quantity::parse(&text);
    }
}
