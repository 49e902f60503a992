//! Simulated endpoints, cores, links and networks.
