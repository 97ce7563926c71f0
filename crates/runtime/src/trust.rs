//! The target addresses that a run may contact.
//!
//! **Invariant:** in a dry run with a base, only addresses that base names are contacted, and each address is checked
//! independently (`tests/trust.rs`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use qontract_bundle::Sha256;
use serde::Serialize;

use crate::fault::Fault;
use crate::state::digest;

/// An address that a shard contacts, together with everything that determines which credentials are sent to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAddress {
    label: String,
    digest: Sha256,
}

impl TargetAddress {
    /// Creates the address of a target. `label` names the address in messages and must not contain a secret; `target`
    /// is the whole address, including the location of its credentials.
    pub fn of<T: Serialize + ?Sized>(label: impl Into<String>, target: &T) -> Self {
        Self { label: label.into(), digest: digest(target) }
    }

    /// The name of the address in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Creates the address of a target from its digest.
    pub(crate) fn of_digest(label: impl Into<String>, digest: Sha256) -> Self {
        Self { label: label.into(), digest }
    }
}

/// The addresses that a shard may contact; all by default.
///
/// ```
/// use qontract_runtime::{AddressTrust, TargetAddress};
///
/// let address = |server: &str| TargetAddress::of(server, &(server, "creds/robot"));
/// let trust = AddressTrust::only([address("https://c1.example.com")]);
/// assert!(trust.check(&address("https://c1.example.com")).is_ok());
///
/// let fault = trust.check(&address("https://evil.example.com")).unwrap_err();
/// let expect = "`https://evil.example.com` is new in this change and is not contacted before it is merged";
/// assert_eq!(fault.text, expect);
/// ```
#[derive(Clone, Default)]
pub struct AddressTrust(Option<Arc<BTreeSet<Sha256>>>);

impl AddressTrust {
    /// Allows only these addresses.
    pub fn only(addresses: impl IntoIterator<Item = TargetAddress>) -> Self {
        Self(Some(Arc::new(addresses.into_iter().map(|address| address.digest).collect())))
    }

    /// Whether the address may be contacted.
    pub fn trusts(&self, address: &TargetAddress) -> bool {
        self.0.as_ref().is_none_or(|trusted| trusted.contains(&address.digest))
    }

    /// Fails unless the address may be contacted. The state at a refused address is unknown: the caller lists the
    /// scopes of the address as [`Observed::Unknown`](crate::Observed::Unknown) with this fault, which does not fail
    /// the run.
    pub fn check(&self, address: &TargetAddress) -> Result<(), Fault> {
        if self.trusts(address) {
            return Ok(());
        }
        let label = &address.label;
        Err(Fault::guard(format!("`{label}` is new in this change and is not contacted before it is merged")))
    }
}

impl fmt::Debug for AddressTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("AddressTrust(all)"),
            Some(trusted) => write!(f, "AddressTrust({} addresses)", trusted.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_trusted_as_a_whole() {
        let address = |server: &str, token: &str| TargetAddress::of(server, &(server, token));
        let trust = AddressTrust::only([address("a", "t1"), address("b", "t2")]);
        let check = |server: &str, token: &str, expect: bool| {
            assert_eq!(trust.check(&address(server, token)).is_ok(), expect, "{server} {token}");
        };
        check("a", "t1", true);
        check("b", "t2", true);
        // The credentials of another server are refused for a known server, and known credentials are refused for
        // another server.
        check("a", "t2", false);
        check("b", "t1", false);
        check("c", "t1", false);
        assert!(AddressTrust::default().trusts(&address("c", "t1")));
        assert!(!AddressTrust::only([]).trusts(&address("a", "t1")));
        let renamed = TargetAddress::of("another label", &("a", "t1"));
        assert!(trust.trusts(&renamed), "the label decides nothing");
    }
}
