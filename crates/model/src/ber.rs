//! Bit error rate to packet error rate, exact and linear, and back.
//!
//! Source: the high-BER paper (Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254), Table 1 and Table 3, which uses
//! the linear form throughout.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Ber, Bytes, Probability};

const EXACT: &str = "independent bit errors: PER = 1 - (1 - BER)^bits";
const LINEAR: &str = "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254, Table 1: PER = BER x bits";

/// Packet error rate, exact: `1 - (1 - BER)^(8 size)`.
///
/// Domain: errors independent from bit to bit, any one of them loses the packet. Fading and interference come in
/// bursts; the same mean BER then hits fewer packets.
pub fn per(size: Bytes, ber: Ber) -> Result<Estimate<Probability>, InputError> {
    above_zero("the packet size", size.0)?;
    Ok(Estimate::new(ber.to_per(size), EXACT))
}

/// Expected bit errors per packet, `BER * 8 size`: what Table 1 calls the packet error rate.
///
/// Known error: 0.6 % at 1500 B and BER 1e-6, 6 % at 1e-5, 72 % at 1e-4.
pub fn per_linear(size: Bytes, ber: Ber) -> Result<Estimate<f64>, InputError> {
    above_zero("the packet size", size.0)?;
    let linear = ber.to_per_linear(size);
    let exact = ber.to_per(size).fraction();
    let error = if exact > 0.0 { linear / exact - 1.0 } else { 0.0 };
    Ok(Estimate::new(linear, LINEAR)
        .caveat_if(linear > 1.0, || {
            format!(
                "{linear} is no probability but a number of bit errors: the packet error rate is {exact:.4}"
            )
        })
        .caveat_if(linear <= 1.0 && error > 0.05, || {
            format!("{:.0} % above the exact packet error rate of {exact:.4}", error * 100.0)
        }))
}

/// Bit error rate that loses this share of the packets, exact: `1 - (1 - PER)^(1 / (8 size))`.
pub fn ber_of_per(size: Bytes, per: Probability) -> Result<Estimate<Ber>, InputError> {
    above_zero("the packet size", size.0)?;
    Ok(Estimate::new(per.to_ber(size), EXACT).caveat_if(per == Probability::ONE, || {
        "every packet lost: any bit error rate that leaves no packet whole fits as well".to_owned()
    }))
}

/// Bit error rate by the linear form, `PER / (8 size)`: Table 3's factor of 1e4 at 1250 B.
pub fn ber_of_per_linear(size: Bytes, per: Probability) -> Result<Estimate<f64>, InputError> {
    above_zero("the packet size", size.0)?;
    let linear = per.fraction() / size.bits() as f64;
    let exact = per.to_ber(size).errors_per_bit();
    Ok(Estimate::new(linear, LINEAR).caveat_if(linear > 0.0 && exact / linear > 1.05, || {
        format!("{:.0} % below the exact bit error rate of {exact:.3e}", (1.0 - linear / exact) * 100.0)
    }))
}

/// One row of Table 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Bit error rate, `10^-decade`.
    pub ber: Ber,
    /// As the paper has it.
    pub linear: Estimate<f64>,
    /// As it is.
    pub exact: Estimate<Probability>,
}

/// Table 1 for packets of `size`: BER 1e-1 to 1e-9.
pub fn table(size: Bytes) -> Result<Vec<Row>, InputError> {
    const BERS: [f64; 9] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];
    let row = |ber| {
        let ber = Ber::new(ber).expect("a constant between 0 and 1");
        Ok(Row { ber, linear: per_linear(size, ber)?, exact: per(size, ber)? })
    };
    BERS.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ber(value: f64) -> Ber {
        Ber::new(value).expect("a bit error rate")
    }

    #[test]
    fn table_1_with_both_columns() {
        let linear = [1200.0, 120.0, 12.0, 1.2, 0.12, 0.012, 0.0012, 0.00012, 0.000012];
        let exact = [1.0, 1.0, 0.999994, 0.69882, 0.11308, 0.011928, 0.0011993, 0.00011999, 0.000012];
        for ((row, linear), exact) in table(Bytes(1500)).unwrap().iter().zip(linear).zip(exact) {
            assert!((row.linear.value / linear - 1.0).abs() < 1e-12, "{row:?}");
            assert!((row.exact.value.fraction() / exact - 1.0).abs() < 1e-4, "{row:?}");
            assert_eq!(row.linear.caveats.is_empty(), linear < 0.1, "{row:?}");
        }
        let rows = table(Bytes(1250)).unwrap();
        assert!((rows[3].exact.value.fraction() - 0.632).abs() < 5e-4);
        assert!((rows[4].exact.value.fraction() - 0.0952).abs() < 5e-5);
        assert_eq!(rows[3].linear.value, 1.0);
    }

    #[test]
    fn ten_per_cent_at_1250_bytes_is_1_05e_5() {
        let ten = Probability::new(0.1).expect("a probability");
        let exact = ber_of_per(Bytes(1250), ten).unwrap().value.errors_per_bit();
        assert!((exact - 1.0536e-5).abs() < 1e-9);
        let linear = ber_of_per_linear(Bytes(1250), ten).unwrap();
        assert_eq!(linear.value, 1e-5);
        assert!(linear.caveats[0].contains("below the exact"));
    }

    #[test]
    fn tiny_rates_do_not_cancel() {
        let tiny = per(Bytes(1500), ber(1e-17)).unwrap().value;
        assert!((tiny.fraction() / 1.2e-13 - 1.0).abs() < 1e-9);
        let back = ber_of_per(Bytes(1500), tiny).unwrap().value.errors_per_bit();
        assert!((back / 1e-17 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_ends_are_numbers() {
        assert_eq!(per(Bytes(1500), ber(1.0)).unwrap().value, Probability::ONE);
        assert_eq!(ber_of_per(Bytes(1500), Probability::ONE).unwrap().value, ber(1.0));
        assert_eq!(per(Bytes(1500), Ber::ZERO).unwrap().value, Probability::ZERO);
        assert!(per(Bytes(0), Ber::ZERO).is_err());
    }
}
