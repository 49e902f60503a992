//! Measuring loops over Comm: echo, two writes, stream, parametrised round trip.
