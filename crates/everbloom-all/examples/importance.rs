//! Keys that matter are remembered longest: paying customers before visitors.
//!
//! `cargo run -p everbloom-all --example importance`

use everbloom::{Goal, Importance};
use everbloom_all::KINDS;

fn main() -> Result<(), everbloom::Error> {
    let mut seen = Goal::new().memory("8KiB").fpr("1%").with_importance().build_among(KINDS)?;
    let (customer, visitor) = (Importance::new(9, 10)?, Importance::new(1, 10)?);

    // A few customers, then far more visitors than there is memory for.
    for number in 0..500 {
        seen.observe(format!("customer {number}"), customer);
    }
    for number in 0..20_000 {
        seen.observe(format!("visitor {number}"), visitor);
    }

    let remembered = |kind: &str, count: u32| {
        (0..count).filter(|number| seen.contains(format!("{kind} {number}"))).count() as f64 / f64::from(count)
    };
    let (customers, visitors) = (remembered("customer", 500), remembered("visitor", 20_000));
    println!("remembered: {:.0} % of the customers, {:.0} % of the visitors", 100.0 * customers, 100.0 * visitors);
    assert!(customers > 2.0 * visitors, "what matters is forgotten last");
    Ok(())
}
