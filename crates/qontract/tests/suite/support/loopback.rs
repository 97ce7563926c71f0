//! A web server on the loopback interface with scripted responses.

pub use qontract_testkit::{Loopback, Reply};
