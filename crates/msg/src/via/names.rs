//! The name service of VIPL: `VipNSInit`, `VipNSGetHostByName`, `VipNSGetHostByAddr`, `VipNSShutdown`.
//!
//! *Choice*: where names come from is the provider's; here from a table that is handed over when the service
//! begins, as a file of hosts would be.

use alloc::string::String;
use alloc::vec::Vec;

use super::nic::Nic;
use super::{Address, HostAddress, ViplError};

/// Hosts and their names; a name may stand for several.
pub(crate) type Names = Vec<(String, HostAddress)>;

impl Nic {
    /// `VipNSInit`: these are the hosts.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if it has begun already; [`ViplError::InvalidParameter`] for a name of
    /// no letters.
    pub fn ns_init(&mut self, hosts: &[(&str, HostAddress)]) -> Result<(), ViplError> {
        if self.names.is_some() {
            return Err(ViplError::ErrorNameservice);
        }
        if hosts.iter().any(|(name, _)| name.is_empty()) {
            return Err(ViplError::InvalidParameter);
        }
        self.names = Some(hosts.iter().map(|(name, host)| (String::from(*name), *host)).collect());
        Ok(())
    }

    /// `VipNSGetHostByName`: the address of this name, the one of this number where it has several; its
    /// discriminator is the caller's to fill in.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun, or has no such name or number.
    pub fn ns_get_host_by_name(&self, name: &str, number: usize) -> Result<Address, ViplError> {
        let mut named = self.names.iter().flatten().filter(|(known, _)| known == name);
        let (_, host) = named.nth(number).ok_or(ViplError::ErrorNameservice)?;
        Ok(Address { host: *host, discriminator: Vec::new() })
    }

    /// `VipNSGetHostByAddr`: the first name of a host.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun, or has no such host.
    pub fn ns_get_host_by_addr(&self, address: &Address) -> Result<&str, ViplError> {
        let mut hosts = self.names.iter().flatten();
        let found = hosts.find(|(_, host)| *host == address.host);
        found.map(|(name, _)| name.as_str()).ok_or(ViplError::ErrorNameservice)
    }

    /// `VipNSShutdown`.
    ///
    /// # Errors
    /// [`ViplError::ErrorNameservice`] if the service has not begun.
    pub fn ns_shutdown(&mut self) -> Result<(), ViplError> {
        self.names.take().map(|_| ()).ok_or(ViplError::ErrorNameservice)
    }
}
