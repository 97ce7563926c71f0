//! Integers of any size, as JSON decimal digits.

/// Maximum number of digits: Python's limit.
pub const MAX_DIGITS: usize = 4_300;

/// An integer under construction, in limbs of nine decimal digits, lowest first.
pub struct Decimal(Vec<u32>);

const LIMB: u64 = 1_000_000_000;

impl Decimal {
    /// Zero.
    pub fn zero() -> Self {
        Self(Vec::new())
    }

    /// `self * factor + addend`.
    pub fn shift(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = u32::try_from(product % LIMB).expect("a remainder of a billion fits");
            carry = product / LIMB;
        }
        if carry > 0 {
            self.0.push(u32::try_from(carry).expect("less than the factor"));
        }
    }

    /// The decimal digits, without leading zeros.
    pub fn text(&self) -> String {
        let Some((highest, rest)) = self.0.split_last() else {
            return "0".to_owned();
        };
        let mut text = highest.to_string();
        for limb in rest.iter().rev() {
            text.push_str(&format!("{limb:09}"));
        }
        text
    }
}
