//! A web server on the loopback interface that answers by a script.

pub use qontract_testkit::{Loopback, Reply};
