//! Quantities as Kubernetes writes them: `30Gi`, `500m`, `1e3`.

/// A quantity in units of 10⁻⁹, which is as fine as Kubernetes has it. Its size is at most 2⁶³ − 1 units of one; what is larger
/// stays there, and what is finer is rounded away from zero, both as `resource.Quantity` does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

/// Parts of one.
const PARTS: i128 = 1_000_000_000;
const LARGEST: i128 = i64::MAX as i128 * PARTS;
/// The largest power of ten that an i128 holds.
const POWER_MAX: u32 = 38;

impl Quantity {
    /// Reads a quantity; none where the text is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest
            .find(|it: char| !it.is_ascii_digit() && it != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (base, exponent) = match binary(suffix) {
            Some(base) => (base, 0),
            None => (1, decimal(suffix)?),
        };
        let size = size(whole, fraction, base, exponent);
        Some(Self(if is_negative { -size } else { size }))
    }

    pub(super) fn from_int(value: i128) -> Self {
        Self(value.saturating_mul(PARTS).clamp(-LARGEST, LARGEST))
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).clamp(-LARGEST, LARGEST))
    }

    pub(super) fn subtract(self, other: Self) -> Self {
        Self((self.0 - other.0).clamp(-LARGEST, LARGEST))
    }

    pub(super) fn sign(self) -> i64 {
        // One of -1, 0 and 1.
        i64::try_from(self.0.signum()).unwrap_or_default()
    }

    /// Returns the whole number that this is.
    pub(super) fn as_integer(self) -> Option<i64> {
        (self.0 % PARTS == 0)
            .then(|| i64::try_from(self.0 / PARTS).ok())
            .flatten()
    }

    #[expect(clippy::cast_precision_loss, reason = "it is called approximate")]
    pub(super) fn as_float(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

impl std::fmt::Display for Quantity {
    /// Writes the plain number: the form in which it was written is not kept.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, parts) = (self.0 / PARTS, (self.0 % PARTS).unsigned_abs());
        if parts == 0 {
            return write!(f, "{whole}");
        }
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{parts:09}");
        let fraction = fraction.trim_end_matches('0');
        write!(f, "{sign}{}.{fraction}", whole.unsigned_abs())
    }
}

fn binary(suffix: &str) -> Option<i128> {
    let power = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .iter()
        .position(|it| *it == suffix)?;
    Some(1_i128 << (10 * (power + 1)))
}

fn decimal(suffix: &str) -> Option<i32> {
    Some(match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
                return None;
            }
            // Beyond that everything is the largest, or the smallest, in any case.
            exponent.parse().unwrap_or(if exponent.starts_with('-') {
                -100_000
            } else {
                100_000
            })
        }
    })
}

/// Returns `whole.fraction × base × 10^exponent` in parts, rounded up.
fn size(whole: &str, fraction: &str, base: i128, exponent: i32) -> i128 {
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // The digits stand for so many parts, times ten to the power of `shift`.
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let shift = exponent.saturating_sub(places).saturating_add(9);
    // More digits than the largest quantity has, and as many as matter of a fraction.
    let kept = digits.len().min(30);
    let shift = shift.saturating_add(i32::try_from(digits.len() - kept).unwrap_or(i32::MAX));
    let is_cut = digits[kept..].bytes().any(|it| it != b'0');
    let mantissa: i128 = digits[..kept].parse().unwrap_or(LARGEST);
    let Some(mantissa) = mantissa.checked_mul(base) else {
        // 10³⁰ × 2⁶⁰ is too much for an i128; without the fraction it is too much for a quantity unless the shift is low.
        return scaled_down_first(mantissa, base, shift);
    };
    if shift >= 0 {
        return 10_i128
            .checked_pow(shift.unsigned_abs())
            .and_then(|power| mantissa.checked_mul(power))
            .unwrap_or(LARGEST)
            .min(LARGEST);
    }
    divided(mantissa, shift.unsigned_abs(), is_cut).min(LARGEST)
}

fn scaled_down_first(mantissa: i128, base: i128, shift: i32) -> i128 {
    if shift >= 0 {
        return LARGEST;
    }
    divided(mantissa, shift.unsigned_abs(), false)
        .checked_mul(base)
        .unwrap_or(LARGEST)
        .min(LARGEST)
}

/// Divides by a power of ten, rounding up.
fn divided(mantissa: i128, power: u32, is_cut: bool) -> i128 {
    if power > POWER_MAX {
        return i128::from(mantissa != 0);
    }
    let divisor = 10_i128.pow(power);
    mantissa / divisor + i128::from(mantissa % divisor != 0 || is_cut)
}
