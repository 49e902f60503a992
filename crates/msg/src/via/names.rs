//! The name service of VIPL: `VipNSInit`, `VipNSGetHostByName`, `VipNSGetHostByAddr`, `VipNSShutdown`.
//!
//! *Choice*: where names come from is the provider's; here from a table that is handed over when the service
//! begins, as a file of hosts would be.

use alloc::string::String;
use alloc::vec::Vec;

use super::{HostAddress, ViplError};

/// The name service of a NIC: hosts and their names, while it is open. A name may stand for several hosts.
#[derive(Clone, Debug, Default)]
pub struct Names(Option<Vec<(String, HostAddress)>>);

impl Names {
    /// `VipNSInit`: these are the hosts.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if it has begun already; [`ViplError::InvalidParameter`] for a name of
    /// no letters.
    pub fn open(&mut self, hosts: &[(&str, HostAddress)]) -> Result<(), ViplError> {
        if self.0.is_some() {
            return Err(ViplError::ErrorNameservice);
        }
        if hosts.iter().any(|(name, _)| name.is_empty()) {
            return Err(ViplError::InvalidParameter);
        }
        self.0 = Some(hosts.iter().map(|(name, host)| (String::from(*name), *host)).collect());
        Ok(())
    }

    /// `VipNSGetHostByName`: the address of this name, the one of this number where it has several.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun, or has no such name or number.
    pub fn host_by_name(&self, name: &str, number: usize) -> Result<HostAddress, ViplError> {
        let mut named = self.0.iter().flatten().filter(|(known, _)| known == name);
        named.nth(number).map(|(_, host)| *host).ok_or(ViplError::ErrorNameservice)
    }

    /// `VipNSGetHostByAddr`: the first name of a host.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun, or has no such host.
    pub fn host_by_address(&self, address: HostAddress) -> Result<&str, ViplError> {
        let found = self.0.iter().flatten().find(|(_, host)| *host == address);
        found.map(|(name, _)| name.as_str()).ok_or(ViplError::ErrorNameservice)
    }

    /// `VipNSShutdown`.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun.
    pub fn close(&mut self) -> Result<(), ViplError> {
        self.0.take().map(|_| ()).ok_or(ViplError::ErrorNameservice)
    }
}
